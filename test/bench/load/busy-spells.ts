/**
 * What a thread did without a pause, from the samples of a CPU profile: whatever comes meanwhile
 * waits for the rest of it.
 */
import type { Sample } from './cpu-profile.ts'

/** One cause that kept the thread from anything else. */
export interface Spell {
  readonly cause: string
  readonly ms: number
}

export interface CauseOfWaits {
  readonly cause: string
  /** Of all the time. */
  readonly busyPart: number
  /** What comes at any moment meets one that is longer than this with this probability. */
  readonly heldPart: number
  readonly spellsPerSecond: number
  readonly p99Ms: number
  readonly longestMs: number
}

/** Spells that a sample of another cause interrupts are one: the sampler hits a few of them. */
export function spellsOf(samples: readonly Sample[], causeOf: (at: Sample) => string): Spell[] {
  const spells: { cause: string; ms: number }[] = []
  for (const sample of samples) {
    const cause = causeOf(sample)
    const last = spells.at(-1)
    if (last?.cause === cause) last.ms += sample.micros / 1_000
    else spells.push({ cause, ms: sample.micros / 1_000 })
  }
  return spells
}

/** @param heldMs how long a wait counts. */
export function causesOf(spells: readonly Spell[], heldMs: number): readonly CauseOfWaits[] {
  const all = spells.reduce((sum, { ms }) => sum + ms, 0)
  const byCause = new Map<string, Spell[]>()
  for (const spell of spells) {
    const own = byCause.get(spell.cause)
    if (own === undefined) byCause.set(spell.cause, [spell])
    else own.push(spell)
  }
  return [...byCause]
    .map(([cause, own]) => {
      const lengths = own.map(({ ms }) => ms).toSorted((a, b) => a - b)
      const sum = (of: (ms: number) => number) =>
        lengths.reduce((total, ms) => total + of(ms), 0) / all
      return {
        cause,
        busyPart: sum((ms) => ms),
        heldPart: sum((ms) => Math.max(0, ms - heldMs)),
        spellsPerSecond: (1_000 * lengths.length) / all,
        p99Ms: lengths[Math.floor(lengths.length * 0.99)] ?? 0,
        longestMs: lengths.at(-1) ?? 0,
      }
    })
    .toSorted((a, b) => b.heldPart - a.heldPart)
}
