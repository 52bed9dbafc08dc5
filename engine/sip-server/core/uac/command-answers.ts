/** What an application is told about a request that it asked for. */
import type { Flow } from '../../flow.ts'
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

export function acknowledge(
  stack: Stack,
  command: AppRequest,
  flow: Flow,
  transactionId: string,
  text: string,
  now: number,
): void {
  const meta = stack.applicationMeta(text, flow, now)
  const id = stack.nextId()
  stack.deliver(
    command.clientId,
    encodeRequestSent({ id, commandId: command.id, meta, transactionId, text }),
  )
}

export function refuse(stack: Stack, command: AppRequest, problem: string): void {
  stack.deliver(command.clientId, encodeNok(stack.nextId(), command.id, problem))
}
