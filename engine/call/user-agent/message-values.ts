/** Received messages as call control reads them. */
import type { AppEvent, ResponseEvent } from '../../sip-server/application.ts'
import { hostPort } from '../../sip-server/message/index.ts'
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

/** Names that passed before: making a lower-case copy of each costs more than all else here. */
const keys = new Map<string, string>()
const MAX_KEYS = 500

function keyOf(name: string): string {
  const known = keys.get(name)
  if (known !== undefined) return known
  const isKept = name.startsWith('X-') || name === 'Diversion' || isPrivate(name)
  const key = isKept ? name : name.toLowerCase()
  if (keys.size < MAX_KEYS) keys.set(name, key)
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
