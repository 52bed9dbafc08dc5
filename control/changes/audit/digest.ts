import { createHash } from 'node:crypto'

/** SHA-256 of the JSON as the API shows it; null when absent or not reported by the route. */
export function digestOf(shown: unknown): string | null {
  if (shown === null || shown === undefined) return null
  return createHash('sha256').update(JSON.stringify(shown)).digest('base64url')
}
