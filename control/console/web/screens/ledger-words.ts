/** An entry of the ledger in a sentence: the amount is beside it. */
import type { LedgerEntry } from '../api/views.ts'
import { plural } from '../parts/format.ts'

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

/** `user:admin` → `admin` */
export function actorText(actor: string, name: string | null = null): string {
  if (name !== null) return name
  const [kind, ...rest] = actor.split(':')
  switch (kind) {
    case 'user':
      return rest.join(':')
    case 'key':
      return `key ${rest.join(':').slice(0, 8)}`
    case 'customer':
      return `customer ${rest.join(':')}`
    case 'payment':
      return 'a payment'
    case 'anonymous':
      return 'somebody without a credential'
    case 'platform':
      return 'the platform'
    case 'console':
      return 'the command line'
    default:
      return actor
  }
}
