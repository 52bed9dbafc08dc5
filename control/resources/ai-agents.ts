/** AI agents: each a number with the SIP URI of a voice service (SPECIFICATION.md §4.7). */
import { exampleMedia, exampleTime, count, mediaView, moment } from '../http/view-fields.ts'
import { z } from 'zod'
import { first } from '../../schema/sql/query.ts'
import { ApiError } from '../http/api-error.ts'
import { limit, name, reference, sipUri, text } from '../http/fields.ts'
import { flag, names } from './columns.ts'
import { extensionNumber, refuseTakenNumber } from './extensions.ts'
import { refuseGateways, refuseOwnAddresses } from './gateway-reach.ts'
import { mediaColumns, mediaFields, stripHeaders } from './media-fields.ts'
import { filledIn, overTls, preset } from './presets.ts'
import type { Definition } from './resource.ts'

const body = z.strictObject({
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

const view = z.strictObject({
  id: z.int(),
  name: z.string(),
  tenant: z.string().nullable(),
  extension: z.string(),
  sip_uri: z.string(),
  description: z.string().nullable(),
  max_calls: count,
  is_active: z.boolean(),
  ...mediaView,
  strip_headers: z.array(z.string()),
  created_at: moment,
  updated_at: moment,
})

const liveAgentView = view.extend({ active_calls: count }).meta({ id: 'AiAgent' })

export type LiveAgent = z.output<typeof liveAgentView>

export const aiAgents: Definition<typeof body, typeof view> = {
  noun: 'AI agent',
  table: 'ai_agent',
  path: '/telephony/ai-agents',
  scope: 'agents',
  kind: 'agent',
  body,
  view,
  onlyAtCreation: ['preset'],
  unstored: ['preset'],
  columns: {
    is_active: flag('is_active'),
    ...mediaColumns,
    strip_headers: names('strip_headers', []),
  },
  search: ['ai_agent.name', 'extension'],
  order: ['ai_agent.name'],
  limits: ['agents'],
  prepare(agent) {
    const filled = filledIn(agent)
    // A preset also means TLS, where the URI names no transport.
    return filled.preset === undefined ? filled : { ...filled, sip_uri: overTls(filled.sip_uri) }
  },
  destinations: (agent) => (agent.is_active ? [agent.sip_uri] : []),
  async check({ body: agent, before, scope, tenantId, deps: { store, reserved } }) {
    await refuseTakenNumber(store, 'extension', agent.extension, tenantId)
    const destination = { path: 'sip_uri', uri: agent.sip_uri }
    await refuseGateways(store, agent.is_active ? [destination] : [], tenantId, scope)
    if (before?.sip_uri === agent.sip_uri) return undefined
    refuseOwnAddresses([destination], scope, reserved.own)
    return { is_by_tenant: scope.tenantId === null ? 0 : 1 }
  },
  async removing({ id }, { tenantId }, { store }) {
    const routes = store.db
      .selectFrom('inbound_route')
      .select(['name', 'tenant_id'])
      .where('target_type', '=', 'agent')
      .where('target', '=', String(id))
    const route = await first(store, routes)
    if (route === undefined) return
    const who = tenantId === null || route.tenant_id === tenantId ? route.name : 'The platform'
    throw new ApiError(409, 'in_use', `${who} still sends calls to this agent`)
  },
  follow: ({ engine }, { id }) => engine.reloadRouting({ of: 'agent', ids: [id] }),
  described: {
    tag: 'Agents',
    nodes: 'all',
    shown: liveAgentView,
    example: {
      id: 1,
      name: 'concierge',
      tenant: null,
      extension: '700',
      sip_uri: 'sip:concierge@agents.example',
      description: null,
      max_calls: 10,
      ...exampleMedia,
      strip_headers: [],
      is_active: true,
      created_at: exampleTime,
      updated_at: exampleTime,
      active_calls: 0,
    },
    body: { name: 'concierge', extension: '700', sip_uri: 'sip:concierge@agents.example' },
    patch: { max_calls: 20 },
  },
}
