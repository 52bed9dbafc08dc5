/** The latest choices of a user in the palette, kept in this browser. */
import type { PaletteEntry } from './palette-entries.ts'

const MAX_RECENT = 10

const placeOf = (userId: number): string => `tollgate.recent.${userId}`

export function recentOf(userId: number): readonly PaletteEntry[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(placeOf(userId)) ?? '[]')
    return Array.isArray(kept) ? kept.filter(isEntry).slice(0, MAX_RECENT) : []
  } catch {
    return []
  }
}

export function keepRecent(userId: number, entry: PaletteEntry): void {
  const others = recentOf(userId).filter(({ to }) => to !== entry.to)
  localStorage.setItem(placeOf(userId), JSON.stringify([entry, ...others].slice(0, MAX_RECENT)))
}

/** The storage may have what another version has left, or what a person has written. */
function isEntry(value: unknown): value is PaletteEntry {
  const { id, title, detail, at, to } = Object(value) as Partial<
    Record<keyof PaletteEntry, unknown>
  >
  const areTexts = [id, title, detail].every((text) => typeof text === 'string')
  if (!areTexts || typeof to !== 'string') return false
  return (at === null || typeof at === 'string') && /^\/(console|guide)\b/.test(to)
}
