# SPDX-License-Identifier: Apache-2.0
"""Image decoding on the GPU; imported only by pipelines that use it."""
