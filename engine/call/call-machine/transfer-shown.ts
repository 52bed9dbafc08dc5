/** How far a transfer has come, as the API and the traces of its calls have it. */
import type { CallTransfer } from '../../../schema/contracts/calls.ts'
import { callOf, legOf } from './parties.ts'
import type { Turn } from './protocol.ts'
import type { Call, Transfer } from './state.ts'

/** A phone may ask for transfers again and again. */
const MAX_NOTES = 100

export function show(
  turn: Turn,
  transfer: Transfer,
  state: CallTransfer['state'],
  sipCode: number | null,
): void {
  const { world } = turn
  const { kind, transferor, transferee, consulting, target, newCall, destination } = transfer
  const isReplacement = kind === 'replacement' || kind === 'early'
  const callAt = (legId: string | undefined): Call | undefined => {
    const leg = legOf(world, legId)
    return leg && callOf(world, leg)
  }
  const one = callAt(transferee) ?? world.calls.get(transfer.ringing ?? '')
  const other = kind === 'attended' ? callAt(target) : world.calls.get(newCall ?? '')
  if (!one || !other) return
  const shown = { state, destination, sipCode, callUuid: other.start.callUuid }
  if (!isReplacement)
    for (const call of [callAt(transferor), callAt(consulting)]) if (call) call.transfer = shown
  tell(turn, one, shown)
  const seen = { ...shown, callUuid: one.start.callUuid }
  if (kind === 'attended') tell(turn, other, seen)
  else other.transfer = seen
}

function tell({ now: at, commands }: Turn, call: Call, transfer: CallTransfer): void {
  call.transfer = transfer
  if (call.notes.length < MAX_NOTES) call.notes.push({ at, what: 'transfer', transfer })
  commands.push({ type: 'transfer', callUuid: call.start.callUuid, transfer })
}
