/** Smoothed round trip, as RFC 6298 §2 smooths it: an eighth of each new sample. Milliseconds. */
export function smoothLatency(smoothedMs: number | undefined, sampleMs: number): number {
  return smoothedMs === undefined ? sampleMs : smoothedMs + (sampleMs - smoothedMs) / 8
}
