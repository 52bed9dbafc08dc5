/** Request body of AI agents (SPECIFICATION.md §4.7). */
import { z } from 'zod'
import { limit, name, reference, sipUri, text } from '../../http/fields.ts'
import { mediaFields } from '../media-fields.ts'
import { preset } from '../presets.ts'
import { stripHeaders } from '../stripped-headers.ts'
import { extensionNumber } from '../extensions/extension-body.ts'

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
