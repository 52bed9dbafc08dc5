/** Where a page of call records ended, as text: the next page begins behind it. */
import { z } from 'zod'
import type { RowPosition } from './columns/best-rows.ts'
import { type RecordSort, sortKeys } from './columns/find-records.ts'

const position = z.tuple([z.enum(sortKeys), z.boolean(), z.number().nullable(), z.int(), z.int()])

export const cursorAfter = (
  { by, isDescending }: RecordSort,
  { key, start, id }: RowPosition,
): string => Buffer.from(JSON.stringify([by, isDescending, key, start, id])).toString('base64url')

/** Undefined: it is no cursor of this order. */
export function readCursor(cursor: string, sort: RecordSort): RowPosition | undefined {
  if (!/^[\w-]{1,200}$/.test(cursor)) return undefined
  const { success, data } = position.safeParse(jsonOf(Buffer.from(cursor, 'base64url').toString()))
  if (!success) return undefined
  const [by, isDescending, key, start, id] = data
  return by === sort.by && isDescending === sort.isDescending ? { key, start, id } : undefined
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
