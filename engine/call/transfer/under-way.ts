/** One transfer at a time. */
import type { Participant } from '../legs/conversation.ts'

export const isTransferring = (...participants: readonly Participant[]): boolean =>
  participants.some(({ conversation: { call } }) => call.transfer?.state === 'transferring')
