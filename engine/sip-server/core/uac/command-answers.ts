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

/** The request has left, and its responses will carry `transactionId`. */
export function acknowledge(
  stack: Stack,
  command: AppRequest,
  flow: Flow,
  transactionId: string,
  { text }: Pick<SentRequest, 'text'>,
  now: number,
): void {
  stack.deliver(
    command.clientId,
    encodeRequestSent({
      id: stack.nextId(),
      commandId: command.id,
      meta: stack.applicationMeta(text, flow, now),
      transactionId,
      text,
    }),
  )
}

export function refuse(stack: Stack, command: AppRequest, problem: string): void {
  stack.deliver(command.clientId, encodeNok(stack.nextId(), command.id, problem))
}
