/**
 * Call details for applications that asked for `cdr:attempt`, `cdr:start` or `cdr:stop` (wire/README.md
 * §3.1): each kind goes to one of them, in turn. While nobody asks, nothing is made.
 */
import { encodeCallDetail, type CallDetail } from '../../wire/event.ts'
import type { Stack } from '../stack.ts'

type Source = 'network' | 'application'

/** An INVITE has come (`network`), or was sent. */
export function tellAttempt(stack: Stack, source: Source, text: string, now: number): void {
  tell(stack, { kind: 'attempt', source, time: now, text })
}

/** An INVITE was answered with 2xx. */
function tellStart(
  stack: Stack,
  source: Source,
  role: Extract<CallDetail, { kind: 'start' }>['role'],
  text: string,
  now: number,
): void {
  tell(stack, { kind: 'start', source, role, time: now, text })
}

/** The final response to an INVITE that began a call. */
export function tellOutcome(
  stack: Stack,
  source: Source,
  role: 'uac' | 'uas',
  status: number,
  text: string,
  now: number,
): void {
  if (status < 300) tellStart(stack, source, role, text, now)
  else tellStop(stack, source, 'call-rejected', text, now)
}

/** The final response to an INVITE that was forwarded: as it came, and as it went on. */
export function tellForwarded(
  stack: Stack,
  status: number,
  came: string,
  went: string,
  now: number,
): void {
  if (status >= 300) return tellStop(stack, 'network', 'call-rejected', came, now)
  tellStart(stack, 'network', 'proxy-uac', came, now)
  return tellStart(stack, 'application', 'proxy-uas', went, now)
}

/** A call is over, or never was: a final failure, a CANCEL, a BYE. */
export function tellStop(
  stack: Stack,
  source: Source,
  reason: Extract<CallDetail, { kind: 'stop' }>['reason'],
  text: string,
  now: number,
): void {
  tell(stack, { kind: 'stop', source, reason, time: now, text })
}

function tell(stack: Stack, detail: CallDetail): void {
  if (!stack.applications.wantDetails) return
  const clientId = stack.applications.next(`cdr:${detail.kind}`)
  if (clientId === undefined) return
  stack.deliver(clientId, encodeCallDetail(stack.nextId(), detail))
}
