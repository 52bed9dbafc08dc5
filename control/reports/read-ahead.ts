/**
 * Reads parts one after the other: from a server each while the one before is worked on. SQLite
 * reads in this thread, so that it would gain nothing.
 */
export async function* readAhead<Part, Read>(
  parts: readonly Part[],
  read: (part: Part) => Promise<Read>,
  isAhead: boolean,
): AsyncGenerator<Read, void, undefined> {
  let next: Promise<Read> | undefined
  for (const [index, part] of parts.entries()) {
    const current = await (next ?? read(part))
    const following = parts[index + 1]
    next = isAhead && following !== undefined ? read(following) : undefined
    // The reader of these may end before.
    next?.catch(() => undefined)
    yield current
  }
}

export const inParts = <T>(items: readonly T[], size: number): readonly (readonly T[])[] =>
  Array.from({ length: Math.ceil(items.length / size) }, (_, part) =>
    items.slice(part * size, (part + 1) * size),
  )
