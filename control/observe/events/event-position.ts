/**
 * Where a reader of events is. One node's log is named by an id, `<epoch>-<sequence>`. With several nodes an id has one
 * for each of them, `<node>/<id>,<node>/<id>`, so that a reader goes on at any node, behind what it has of each.
 */

/** The id of the last event by node. */
export type Position = ReadonlyMap<string, string>

/** Instead of a node: the id is that of an installation with one. */
export const ONLY_NODE = ''

/** Longer ids are none of ours: 64 nodes. */
export const MAX_ID_LENGTH = 6_000

export const positionText = (position: Position): string =>
  [...position].map(([node, id]) => `${encodeURIComponent(node)}/${id}`).join(',')

/** Of an unreadable part there is nothing: its node is as one that the reader does not know. */
export function parsePosition(text: string): Position {
  if (text.length > MAX_ID_LENGTH) return new Map()
  if (!text.includes('/')) return new Map([[ONLY_NODE, text]])
  const parts = text.split(',').flatMap((part): [string, string][] => {
    const [, node = '', id = ''] =
      /^([\w.~!*'()%-]{1,200})\/([0-9a-z]{1,12}-\d{1,15})$/.exec(part) ?? []
    const name = decoded(node)
    return name === undefined || name === '' ? [] : [[name, id]]
  })
  return new Map(parts)
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
