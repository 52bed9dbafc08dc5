/** What a message belongs to, before it is handled: for two processes that share a socket. */
import type { DialogTable } from '../dialog/dialog-table.ts'
import type { SipMessage } from '../message/message.ts'
import { serverKey, type Transactions } from './transactions.ts'

/**
 * `known`: to a transaction or a dialog that is here. `stray`: to one that is not. `new`: it begins something, unless
 * it is a copy of what another process has.
 */
export type Belonging = 'known' | 'stray' | 'new'

export function belongingOf(
  message: SipMessage,
  transactions: Transactions,
  dialogs: DialogTable,
): Belonging {
  const { via, method } = message
  if (via === undefined) return 'new'
  if (message.kind === 'response') return transactions.expects(message) ? 'known' : 'stray'
  const key = serverKey(message, via, method === 'CANCEL' ? 'INVITE' : method)
  if (transactions.hasServer(key) || dialogs.ofRequest(message) !== undefined) return 'known'
  return message.toTag !== '' || method === 'ACK' || method === 'CANCEL' ? 'stray' : 'new'
}
