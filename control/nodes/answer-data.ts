/** What another node has answered, read as everything from outside is. */
import { z } from 'zod'
import { parseJson } from '../http/body.ts'
import type { PeerAnswer } from './node-client.ts'

/** `data` of its envelope. Undefined: it is not what it should be, as of a node with another version. */
export function dataOf<S extends z.ZodType>(
  answer: PeerAnswer,
  schema: S,
): z.output<S> | undefined {
  const data = bodyOf(answer, envelope)?.data
  const checked = schema.safeParse(data)
  return data !== undefined && checked.success ? checked.data : undefined
}

const envelope = z.object({ success: z.literal(true), data: z.unknown() })

export function bodyOf<S extends z.ZodType>(
  { status, body }: PeerAnswer,
  schema: S,
): z.output<S> | undefined {
  if (status !== 200) return undefined
  const parsed = parseJson(body.toString('utf8'))
  const checked = schema.safeParse(parsed.kind === 'value' ? parsed.value : undefined)
  return checked.success ? checked.data : undefined
}
