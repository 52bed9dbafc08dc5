/** The tables of drachtio-srf: their sizes, and entries that it would never remove. */
import type { Credentials } from '../../signalling.ts'
import { answerChallenges } from '../challenge.ts'
import type { Agent, AnswerChallenge, Srf } from '../drachtio.ts'

interface Remembering {
  readonly srf: Pick<Srf, '_dialogs'>
  readonly agent: Agent | undefined
}

/** Sizes of the library's own tables: all zero when nothing is going on. */
export function tableSizes(links: readonly Remembering[]): Readonly<Record<string, number>> {
  const stats = { dialogs: 0, requests: 0, sipRequests: 0, invites: 0, acks: 0, challenges: 0 }
  for (const { srf, agent } of links) {
    stats.dialogs += srf._dialogs.size
    stats.challenges += agent?.pendingSipAuthTxnIdUpdate.size ?? 0
    for (const state of agent?.mapServer.values() ?? []) {
      stats.requests += state.pendingRequests.size
      stats.sipRequests += state.pendingSipRequests.size
      stats.invites += state.pendingNetworkInvites.size
      stats.acks += state.pendingAckOrPrack.size
      stats.challenges += state.pendingSipAuthRequests.size
    }
  }
  return stats
}

/** What the library remembers of a challenge that is not answered is forgotten here. */
export function answering(
  credentials: Credentials,
  links: readonly Remembering[],
): AnswerChallenge {
  return answerChallenges(credentials, ({ headers, req }) => {
    for (const { agent } of links) {
      agent?.pendingSipAuthTxnIdUpdate.delete(req.stackTxnId)
      for (const state of agent?.mapServer.values() ?? [])
        state.pendingSipAuthRequests.delete(headers['call-id'] ?? '')
    }
  })
}
