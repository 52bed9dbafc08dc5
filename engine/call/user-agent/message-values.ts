/** Received messages as call control reads them. */
import type { AppEvent, ResponseEvent } from '../../sip-server/application.ts'
import { hostPort, knownName } from '../../sip-server/message/index.ts'
import type { Headers, SipResponse } from '../signalling.ts'

type Message = Extract<AppEvent, { readonly kind: 'request' }>['message']

export function headersOf(message: Message): Headers {
  const headers: Headers = {}
  for (const [name, value] of message.entries()) {
    const key = keyOf(name)
    const before = headers[key]
    headers[key] = before === undefined ? value : `${before},${value}`
  }
  return headers
}

/** Of known names only, which are few: making a lower-case copy of each costs more than all else here. */
const keys = new Map<string, string>()

function keyOf(name: string): string {
  const kept = keys.get(name)
  if (kept !== undefined) return kept
  const isAsSent = name.startsWith('X-') || name === 'Diversion' || isPrivate(name)
  const key = isAsSent ? name : name.toLowerCase()
  const known = knownName(name)
  // Not `name`, which may be a part of a whole message.
  if (known === name) keys.set(known, key)
  return key
}

const isPrivate = (name: string): boolean => name.startsWith('P-') && !name.startsWith('P-Asserted')

export const responseOf = ({ message, flow }: ResponseEvent): SipResponse => ({
  status: message.status,
  reason: message.reason,
  headers: headersOf(message),
  body: message.body,
  peer: hostPort(flow.address, flow.port),
})

/** Why a command was not performed. */
export const problemOf = (reply: AppEvent): string =>
  'problem' in reply ? reply.problem : 'the server gave another reply than expected'

export const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error)
