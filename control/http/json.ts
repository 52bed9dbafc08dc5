/**
 * Parses JSON from outside. Rejects malformed and too deeply nested documents, and texts that cannot be
 * stored.
 */
import type { ErrorDetail } from './api-error.ts'

/** No resource nests deeper than five levels; recursion over stored JSON must not exhaust the stack. */
const MAX_DEPTH = 32

const tooDeep = `is nested deeper than ${MAX_DEPTH} levels`

/** Up to here the problem is told with its path. */
const MAX_PARSED_DEPTH = 4 * MAX_DEPTH

/** Whether a text opens so many brackets that it is not worth parsing. It need not be JSON. */
export function isDeep(text: string): boolean {
  let depth = 0
  let isInString = false
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    if (isInString) {
      if (code === BACKSLASH) at += 1
      else if (code === QUOTE) isInString = false
    } else if (code === QUOTE) isInString = true
    else if (code === OPEN_BRACKET || code === OPEN_BRACE) {
      depth += 1
      if (depth > MAX_PARSED_DEPTH) return true
    } else if (code === CLOSE_BRACKET || code === CLOSE_BRACE) depth -= 1
  }
  return false
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d

type Parsed =
  | { readonly kind: 'value'; readonly value: unknown }
  | { readonly kind: 'problem'; readonly problem: ErrorDetail }

export const notJson = 'is not valid JSON'

export function parseJson(text: string): Parsed {
  if (isDeep(text)) return { kind: 'problem', problem: { path: '', message: tooDeep } }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return { kind: 'problem', problem: { path: '', message: notJson } }
  }
  const problem = findProblem(value, '', 0)
  return problem === undefined ? { kind: 'value', value } : { kind: 'problem', problem }
}

function findProblem(value: unknown, path: string, depth: number): ErrorDetail | undefined {
  if (typeof value === 'string') {
    const message = whyNotKept(value)
    return message === undefined ? undefined : { path, message }
  }
  if (typeof value !== 'object' || value === null) return undefined
  if (depth === MAX_DEPTH) return { path, message: tooDeep }
  for (const [key, member] of Object.entries(value)) {
    const memberPath = path === '' ? key : `${path}.${key}`
    const message = whyNotKept(key)
    if (message !== undefined) return { path: memberPath, message }
    const problem = findProblem(member, memberPath, depth + 1)
    if (problem !== undefined) return problem
  }
  return undefined
}

/**
 * SQLite and C string functions end a text at NUL, and UTF-8 encoding turns half a surrogate pair into
 * U+FFFD: two different texts could look the same.
 */
function whyNotKept(text: string): string | undefined {
  if (text.includes('\0')) return 'contains a NUL character'
  return /\p{Surrogate}/u.test(text) ? 'contains half a surrogate pair' : undefined
}
