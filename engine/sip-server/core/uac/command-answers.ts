/** What an application is told about a request that it asked for. */
import type { Flow } from '../../flow.ts'
import type { SentRequest } from '../../transaction/sent-request.ts'
import { encodeNok, encodeRequestSent } from '../../wire/event.ts'
import type { Stack } from '../stack.ts'

/** What an application asked for: where the answer goes and what it quotes. */
export interface AppRequest {
  readonly clientId: number
  /** Id of the command. */
  readonly id: string
  readonly transactionId: string
  readonly dialogId: string
  readonly routeUrl: string
}

/** A request as it was sent, and what of it drachtio-srf reads beside its fields. */
export interface SentToTell {
  readonly sent: SentRequest
  /** Our Contact, '' where there is none. */
  readonly contact: string
  readonly body: string
}

/** The request has left, and its responses will carry `transactionId`. */
export function acknowledge(
  stack: Stack,
  command: AppRequest,
  flow: Flow,
  transactionId: string,
  request: SentToTell,
  now: number,
): void {
  const { text } = request.sent
  const isBrief = stack.applications.isInProcess(command.clientId)
  stack.deliver(
    command.clientId,
    encodeRequestSent({
      id: stack.nextId(),
      commandId: command.id,
      meta: stack.applicationMeta(text, flow, now),
      transactionId,
      text: isBrief ? summaryOf(request) : text,
    }),
  )
}

/** drachtio-srf parses everything that it is given, so less is faster (protocol page, H5). */
function summaryOf({ sent, contact, body }: SentToTell): string {
  const { method, uri, from, to, callId, cseq } = sent
  const contactLine = contact === '' ? '' : `Contact: ${contact}\r\n`
  return (
    `${method} ${uri} SIP/2.0\r\nFrom: ${from}\r\nTo: ${to}\r\nCall-ID: ${callId}\r\n` +
    `CSeq: ${cseq} ${method}\r\n${contactLine}\r\n${body}`
  )
}

export function refuse(stack: Stack, command: AppRequest, problem: string): void {
  stack.deliver(command.clientId, encodeNok(stack.nextId(), command.id, problem))
}
