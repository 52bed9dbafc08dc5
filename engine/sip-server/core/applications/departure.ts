/**
 * An application has gone. What it had not answered is refused at once. Its calls go on for a moment:
 * nothing of theirs runs through it. Then they end, because nobody could end them any more.
 */
import { sendLocalBye } from '../local-bye.ts'
import type { Stack } from '../stack.ts'
import { acknowledgeAnswer } from '../uac/send-ack.ts'
import { answer } from '../uas/send-response.ts'

export class Departure {
  readonly #stack: Stack
  readonly #clientId: number

  private constructor(stack: Stack, clientId: number) {
    this.#stack = stack
    this.#clientId = clientId
  }

  /** @param graceMs how long its calls go on; 0: not at all */
  static of(stack: Stack, clientId: number, graceMs: number, now: number): void {
    const wasThere = stack.applications.isAuthenticated(clientId)
    stack.applications.disconnected(clientId)
    refuseUnanswered(stack, clientId, wasThere, now)
    settleOwn(stack, clientId, now)
    const departure = new Departure(stack, clientId)
    if (graceMs === 0 || stack.dialogs.ofClient(clientId).length === 0)
      return departure.onTimer('grace', now)
    stack.departures.set(clientId, departure)
    stack.deadlines.start(departure, 'grace', graceMs, now)
  }

  onTimer(_timer: 'grace', now: number): void {
    const stack = this.#stack
    stack.departures.delete(this.#clientId)
    for (const dialog of stack.dialogs.ofClient(this.#clientId))
      // Who has subscribed comes again until that lapses, and another application may answer.
      if (dialog.usage !== 'subscription' || dialog.role !== 'uas')
        sendLocalBye(stack, dialog, 'Application gone', 'silent', now)
  }
}

/** 480 where the application was connected to for this request, and did not come (wire/README.md §2). */
function refuseUnanswered(stack: Stack, clientId: number, wasThere: boolean, now: number): void {
  for (const inbound of [...stack.inbound.values()]) {
    if (inbound.clientId !== clientId) continue
    if (wasThere || clientId > 0)
      answer(stack, inbound, 503, 'Service Unavailable', 'Retry-After: 5\r\n', now)
    else answer(stack, inbound, 480, 'Temporarily Unavailable', '', now)
  }
}

/** Its INVITEs are cancelled; an answer that it has not acknowledged is, so that the callee does not wait. */
function settleOwn(stack: Stack, clientId: number, now: number): void {
  for (const outbound of [...stack.outbound.values()])
    if (outbound.clientId === clientId) {
      outbound.cancel('', now)
      outbound.finished()
    }
  for (const outbound of [...stack.answered.values()])
    if (outbound.clientId === clientId && outbound.dialog)
      acknowledgeAnswer(stack, outbound, outbound.dialog, '', '')
  for (const dialog of stack.dialogs.ofClient(clientId))
    if (dialog.state !== 'confirmed') stack.forget(dialog)
}
