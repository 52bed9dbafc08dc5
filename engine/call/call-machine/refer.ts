import { endSubscription, notify, subscribe } from './leg.ts'
import { callOf, legOf } from './parties.ts'
import type { MachineEvent, Turn } from './protocol.ts'

/** Responds to a REFER, and begins its subscription (RFC 3515 §2.4). */
export function onRefer(
  turn: Turn,
  event: Extract<MachineEvent, { readonly type: 'referAccepted' | 'referRefused' | 'referFailed' }>,
): void {
  const leg = legOf(turn.world, event.legId)
  if (leg === undefined) return
  if (event.type === 'referFailed') {
    const call = callOf(turn.world, leg)
    if (call) call.failedTransfers += 1
    endSubscription(turn, leg, event.status, event.reason)
    return
  }
  if (event.type === 'referRefused') {
    turn.commands.push({ ...event, type: 'answerRequest' })
    return
  }
  const { legId, requestId, id, isSilent } = event
  const headers = isSilent ? { 'refer-sub': 'false' } : {}
  turn.commands.push({ type: 'answerRequest', legId, requestId, status: 202, headers })
  subscribe(leg, id, isSilent)
  notify(turn, leg, 100, 'Trying')
}
