/** An entry of the ledger in a sentence: the amount is beside it. */
import type { LedgerEntry } from '../api/views.ts'
import { plural } from '../parts/format.ts'
import { actorText } from './actor-words.ts'

type Told = Pick<LedgerEntry, 'kind' | 'call' | 'actor' | 'note' | 'ref'>

const kinds = { topup: 'Top-up', adjust: 'Adjustment', refund: 'Refund' } as const

export function entryText({ kind, call, actor, note, ref }: Told): string {
  if (kind === 'debit')
    return call === null
      ? `Call ${ref}`
      : `Call to ${call.destination_number}, ${plural(call.billsec, 'second')}`
  const who = actorText(actor)
  return `${kinds[kind]}${who === '' ? '' : ` by ${who}`}${note === null ? '' : `: ${note}`}`
}
