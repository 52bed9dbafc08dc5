/**
 * Describes whatever a file of the operator has thrown: one line, with file and line. Types are
 * stripped in place, so positions of the stack are those of the source.
 */
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { inspect } from 'node:util'

export interface ThrownProblem {
  /** One line, without the place. */
  readonly message: string
  /** Absolute path; null: not known. */
  readonly file: string | null
  readonly line: number | null
}

const MAX_MESSAGE_LENGTH = 300
const MAX_STACK_LENGTH = 16_384

/** @param ownFolder our code, whose frames are not the operator's. */
export function describeThrown(thrown: unknown, ownFolder: string): ThrownProblem {
  try {
    if (!(thrown instanceof Error))
      return placeless(`threw ${brief(inspect(thrown, { depth: 1 }))}`)
    const { name, message, stack } = thrown
    const reason = causeOf(thrown)
    const text = (name === 'Error' ? message : `${name}: ${message}`) + reason
    const place = placeIn(String(stack).slice(0, MAX_STACK_LENGTH), ownFolder)
    return { ...placeless(brief(text)), ...place }
  } catch {
    // A getter or an `inspect` of its own has thrown.
    return placeless('threw a value that cannot be shown')
  }
}

/** `fetch` says why it has failed in the cause alone; one of several errors has a code alone. */
function causeOf({ cause }: Error): string {
  if (!(cause instanceof Error)) return ''
  const reason = cause.message || ('code' in cause ? String(cause.code) : '')
  return reason === '' ? '' : `: ${reason}`
}

export const placeless = (message: string): ThrownProblem => ({ message, file: null, line: null })

/** `file:12: TypeError: …` */
export function problemLine({ file, line, message }: ThrownProblem): string {
  if (file === null) return message
  return line === null ? `${shownPath(file)}: ${message}` : `${shownPath(file)}:${line}: ${message}`
}

/** From the working directory, where the file stands below it. */
export function shownPath(file: string): string {
  const path = relative('', file)
  return path === '' || path.startsWith('..') ? file : path
}

function brief(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ').trim()
  return line.length > MAX_MESSAGE_LENGTH ? `${line.slice(0, MAX_MESSAGE_LENGTH)}…` : line
}

/** `file:///a.ts:3:7`, `/a.ts:3:7`; that of a syntax error stands alone, and has no column. */
const frame = /^\s+at (?:.* \()?((?:file:\/\/)?[^\s()][^()]*?):(\d+):\d+\)?$/
const syntaxPlace = /^((?:file:\/\/)?(?:\/|[A-Za-z]:[\\/]).*):(\d+)$/

function placeIn(stack: string, ownFolder: string): Partial<ThrownProblem> {
  const [first = '', ...lines] = stack.split('\n')
  const syntax = placeOf(syntaxPlace.exec(first))
  if (syntax !== undefined) return syntax
  const places = lines.flatMap((each) => placeOf(frame.exec(each)) ?? [])
  const foreign = places.filter(({ file }) => !file.startsWith(join(ownFolder, '/')))
  return foreign.find(({ file }) => !file.includes('node_modules')) ?? foreign[0] ?? {}
}

function placeOf(found: RegExpExecArray | null) {
  const [, path = '', line = ''] = found ?? []
  if (path === '' || path.startsWith('node:')) return undefined
  return { file: path.startsWith('file:') ? fileURLToPath(path) : path, line: Number(line) }
}
