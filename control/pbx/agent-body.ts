/** AI agents as a body (SPECIFICATION.md §4.7). */
import { z } from 'zod'
import { limit, name, reference, sipUri, text } from '../provisioning/fields.ts'
import { extensionNumber } from './extension-body.ts'

export const agentBody = z.strictObject({
  name,
  extension: extensionNumber.describe('The number under which the agent is called.'),
  sip_uri: sipUri.describe('Where its calls go.'),
  description: text(500).nullish(),
  max_calls: limit.default(0).describe('0: unlimited. Beyond it callers get 503.'),
  is_active: z.boolean().default(true),
  tenant: reference.nullish().describe('Absent: an agent of the platform, for every tenant.'),
})

export type AgentBody = z.output<typeof agentBody>
