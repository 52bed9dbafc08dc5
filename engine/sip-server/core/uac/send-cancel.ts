/** CANCEL of an INVITE that was sent: a transaction of its own, whose answer interests nobody (RFC 3261 §9.1). */
import type { Flow } from '../../flow.ts'
import type { ClientUser } from '../../transaction/context.ts'
import { clientKey } from '../../transaction/matching.ts'
import { NonInviteClientTransaction } from '../../transaction/non-invite-client.ts'
import { cancelOf, type SentRequest } from '../../transaction/sent-request.ts'
import type { Stack } from '../stack.ts'

/** The INVITE itself ends with 487. `lines` holds whole header lines such as Reason. */
export function sendCancel(
  stack: Stack,
  invite: SentRequest,
  flow: Flow,
  lines: string,
  now: number,
): void {
  const key = clientKey(invite.branch, 'CANCEL')
  const request = { ...invite, method: 'CANCEL', text: cancelOf(invite, lines) }
  const user: ClientUser = {
    onResponse: () => undefined,
    onFailure: () => undefined,
    onTerminated: () => stack.clientTransactions.remove(key),
  }
  const transaction = new NonInviteClientTransaction(request, key, flow, user, stack, now)
  stack.clientTransactions.add(key, transaction)
}
