/**
 * Saves a change of a row only over the version that the person has seen: changes that others have
 * made since the form was opened are shown first.
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

interface RowToSave {
  readonly path: string
  /** Where the row is read as the form shows it. Absent: `path`. */
  readonly shownPath?: string | undefined
  readonly entered: FormData
  readonly body: FormRow
  /** Finds the changes of others since; undefined: none of them is in the form. */
  readonly conflict: (theirs: FormRow, etag: string) => EditConflict | undefined
}

/** Others may change it between two requests of ours; then it is looked at again. */
const MAX_ATTEMPTS = 3

export async function saveRow<T>(row: RowToSave): Promise<ConsoleAnswer<T>> {
  const { path, shownPath = path, entered, body, conflict } = row
  const seen = entered.get(VERSION_NAME)
  let etag = typeof seen === 'string' ? seen : undefined
  for (let attempt = 1; ; attempt += 1) {
    if (etag === undefined) {
      const now = await get<FormRow>(shownPath)
      if (now.kind !== 'ok') return now
      etag = now.etag ?? '*'
      const found = conflict(now.data, etag)
      if (found !== undefined) return conflictAnswer(found)
    }
    const answer: ConsoleAnswer<T> = await send('PATCH', path, body, { 'If-Match': etag })
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
