/** Proposals in words. */
import type { Proposal } from '../api/views.ts'

export const proposerOf = ({
  proposed_by,
  proposed_by_name,
}: Pick<Proposal, 'proposed_by' | 'proposed_by_name'>): string => proposed_by_name ?? proposed_by

export const riskWords: Readonly<Record<Proposal['risk'], string>> = {
  low: 'It can be undone, and no call or request is affected now.',
  medium: 'It can be undone, and calls or requests are affected now.',
  high: 'It cannot be undone, or more than 100 calls or requests are affected now.',
}
