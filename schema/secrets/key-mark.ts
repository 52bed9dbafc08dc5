/** Whether a key is the one that the secrets of a database are encrypted with. */
import { parseKey } from './key-file.ts'
import { type Place, SecretBox } from './secret-box.ts'

/** The setting that is encrypted at the first use of the key: a key that cannot decrypt it is a wrong key. */
export const KEY_MARK = 'secret_key_mark'
const markPlace: Place = { table: 'setting', column: 'value', row: KEY_MARK }

export const newMark = (box: SecretBox): string => box.seal(markPlace, 'tollgate')

/** Undefined when the text is not a key. */
export function boxOf(text: string | undefined): SecretBox | undefined {
  const key = parseKey(text ?? '')
  return key && new SecretBox(key)
}

/**
 * Returns why the secrets cannot be read; undefined when they can, or when there are none.
 *
 * @param mark value of the setting; undefined: no key has been used.
 * @param text of the key; undefined: there is none.
 */
export function keyProblem(
  mark: string | undefined,
  text: string | undefined,
  keptIn: string,
): string | undefined {
  if (mark === undefined) return undefined
  if (text === undefined)
    return `its secrets are encrypted and their key ${keptIn} is missing; put that file back, or set SECRET_KEY to what was in it; if it is lost: tollgate secrets reset`
  const box = boxOf(text)
  if (box === undefined) return notAKey(keptIn)
  return box.open(markPlace, mark) !== undefined
    ? undefined
    : `${keptIn} is not the key that its secrets are encrypted with; put the right one back; if it is lost: tollgate secrets reset`
}

export const notAKey = (keptIn: string): string =>
  `${keptIn} does not hold 32 bytes as base64 or hexadecimal digits`
