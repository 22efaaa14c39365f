# SPDX-License-Identifier: Apache-2.0
"""Image decoding on the GPU: imported by pipelines that decode there."""
