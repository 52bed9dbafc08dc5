import { requestHeader, setAnswerHeader } from './request-head.ts'
import type { Step } from './in-order.ts'

/** Visible ASCII that needs no quoting in logs, because others read what the client chose. */
const wellFormed = /^[\w.:/+=@-]{1,128}$/

/** Echoes `X-Correlation-ID` or generates one. The response, the error envelope and the audit log carry it. */
export function correlationId(randomBytes: (size: number) => Buffer): Step {
  const newId = correlationIds(randomBytes)
  return (c) => {
    const given = requestHeader(c, 'x-correlation-id')
    const id = given !== undefined && wellFormed.test(given) ? given : newId()
    c.set('correlationId', id)
    setAnswerHeader(c, 'X-Correlation-ID', id)
  }
}

/** A random start and a counter: unique without random bytes for each request. */
export function correlationIds(randomBytes: (size: number) => Buffer): () => string {
  const start = randomBytes(9).toString('base64url')
  let count = 0
  return () => `${start}-${(count += 1).toString(36)}`
}
