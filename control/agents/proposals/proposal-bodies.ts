/** Queries and bodies of `/proposals`. */
import { z } from 'zod'
import { pageQuery } from '../../http/envelope.ts'
import { text } from '../../http/fields.ts'

export const proposalQuery = z.strictObject({
  ...pageQuery,
  state: z.enum(['open', 'approved', 'refused', 'expired', 'failed']).optional(),
})

/** Any text: an invalid uuid is not found, like a uuid of another tenant. */
export const proposalPath = z.strictObject({ uuid: z.string().max(100) })

const note = text(500).min(1).optional().describe('What the agent and others read beside it.')

export const approvalBody = z.strictObject({
  revision: z
    .int()
    .min(1)
    .describe('`revision` of the proposal as it was read: only what it showed is approved.'),
  note,
})

export const refusalBody = z.strictObject({ note })
