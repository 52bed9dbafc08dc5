/** Request body of AI agents (SPECIFICATION.md §4.7). */
import { z } from 'zod'
import { limit, name, reference, sipUri, text } from '../provisioning/fields.ts'
import { mediaFields } from '../provisioning/media-fields.ts'
import { preset } from '../provisioning/presets.ts'
import { stripHeaders } from '../provisioning/stripped-headers.ts'
import { extensionNumber } from './extension-body.ts'

export const agentBody = z.strictObject({
  name,
  extension: extensionNumber.describe('The number of the agent.'),
  sip_uri: sipUri.describe('SIP URI to which its calls are sent.'),
  description: text(500).nullish(),
  max_calls: limit.default(0).describe('0: unlimited. Further callers get 503.'),
  is_active: z.boolean().default(true),
  tenant: reference.nullish().describe('Absent: a platform agent, available to every tenant.'),
  ...mediaFields,
  strip_headers: stripHeaders,
  preset,
})

export type AgentBody = z.output<typeof agentBody>
