# SPDX-License-Identifier: Apache-2.0
"""Running the user's own sources of data: in this thread, in worker processes, or in worker threads."""
