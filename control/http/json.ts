/** JSON from outside: malformed, too deep and NUL-carrying documents end here. */
import type { ErrorDetail } from './api-error.ts'

/** No resource nests deeper than five; recursion over stored JSON stays far from the stack's end. */
const MAX_DEPTH = 32

type Parsed =
  | { readonly kind: 'value'; readonly value: unknown }
  | { readonly kind: 'problem'; readonly problem: ErrorDetail }

export function parseJson(text: string): Parsed {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return { kind: 'problem', problem: { path: '', message: 'is not valid JSON' } }
  }
  const problem = findProblem(value, '', 0)
  return problem === undefined ? { kind: 'value', value } : { kind: 'problem', problem }
}

/** SQLite and C string functions end a text at NUL, so that two different texts could look the same. */
function findProblem(value: unknown, path: string, depth: number): ErrorDetail | undefined {
  if (typeof value === 'string')
    return value.includes('\0') ? { path, message: 'contains a NUL character' } : undefined
  if (typeof value !== 'object' || value === null) return undefined
  if (depth === MAX_DEPTH) return { path, message: `is nested deeper than ${MAX_DEPTH} levels` }
  for (const [key, member] of Object.entries(value)) {
    const memberPath = path === '' ? key : `${path}.${key}`
    if (key.includes('\0')) return { path: memberPath, message: 'contains a NUL character' }
    const problem = findProblem(member, memberPath, depth + 1)
    if (problem !== undefined) return problem
  }
  return undefined
}
