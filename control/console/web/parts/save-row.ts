/**
 * Changes or deletes a row only over the version that the person has seen: changes that others have
 * made since it was opened are shown first.
 */
import { type ConsoleAnswer, type EditConflict, get, send } from '../api/api.ts'
import { changedIn, type FieldWords, plainConflict } from './conflict.ts'
import type { FormRow } from './schema-fields.ts'

/** The input with the version that a person has seen, once others' changes were shown. */
export const VERSION_NAME = 'if-match'

/** The choice between what others have written in a field and what was entered. */
export const choiceName = (field: string): string => `keep-${field}`

export const isLeftToOthers = (entered: FormData, field: string): boolean =>
  entered.get(choiceName(field)) === 'theirs'

interface SeenRow {
  readonly path: string
  /** Where the row is read as the form shows it. Absent: `path`. */
  readonly shownPath?: string | undefined
  /** The version that a person has seen; absent: the one that is compared first. */
  readonly seen: string | undefined
  /** Finds the changes of others since; undefined: none of them is in the form. */
  readonly conflict: (theirs: FormRow, etag: string) => EditConflict | undefined
}

interface RowToSave extends Omit<SeenRow, 'seen'> {
  readonly entered: FormData
  readonly body: FormRow
}

export const saveRow = <T>({ entered, body, ...row }: RowToSave): Promise<ConsoleAnswer<T>> =>
  overSeen<T>({ ...row, seen: seenIn(entered) }, (headers) =>
    send<T>('PATCH', row.path, body, headers),
  )

/** Deletes a row; changes of others since it was shown are shown first. */
export const removeRow = (row: SeenRow): Promise<ConsoleAnswer<unknown>> =>
  overSeen<unknown>(row, (headers) => send('DELETE', row.path, undefined, headers))

export function seenIn(entered: FormData): string | undefined {
  const seen = entered.get(VERSION_NAME)
  return typeof seen === 'string' ? seen : undefined
}

/** Others may change it between two requests of ours; then it is looked at again. */
const MAX_ATTEMPTS = 3

async function overSeen<T>(
  { path, shownPath = path, seen, conflict }: SeenRow,
  work: (headers: Readonly<Record<string, string>>) => Promise<ConsoleAnswer<T>>,
): Promise<ConsoleAnswer<T>> {
  let etag = seen
  for (let attempt = 1; ; attempt += 1) {
    if (etag === undefined) {
      const now = await get<FormRow>(shownPath)
      if (now.kind !== 'ok') return now
      etag = now.etag ?? '*'
      const found = conflict(now.data, etag)
      if (found !== undefined) return conflictAnswer(found)
    }
    const answer = await work({ 'If-Match': etag })
    const isStale = answer.kind === 'failed' && answer.code === 'precondition_failed'
    if (!isStale || attempt === MAX_ATTEMPTS) return answer
    etag = undefined
  }
}

const conflictAnswer = (conflict: EditConflict): ConsoleAnswer<never> => ({
  kind: 'failed',
  message: 'Somebody has changed this since you opened it',
  code: 'precondition_failed',
  conflict,
})

/** Saves a form whose fields are drawn by hand. `mine`: each of them, as the API names it. */
export function savePlain<T>(
  path: string,
  entered: FormData,
  base: FormRow,
  mine: FormRow,
  said: FieldWords = {},
): Promise<ConsoleAnswer<T>> {
  const changed = Object.entries(changedIn(base, mine))
  const kept = changed.filter(([name]) => !isLeftToOthers(entered, name))
  return saveRow({
    path,
    entered,
    body: Object.fromEntries(kept),
    conflict: (theirs, etag) => plainConflict({ base, theirs, etag }, mine, said),
  })
}
