/** AI agents: each a number with the SIP URI of a voice service (SPECIFICATION.md §4.7). */
import type { z } from 'zod'
import { first } from '../../schema/sql/query.ts'
import { ApiError } from '../http/api-error.ts'
import { sipUri } from '../http/fields.ts'
import { count } from '../http/view-fields.ts'
import { extensionNumber, refuseTakenNumber } from './extensions.ts'
import * as field from '../http/field-table.ts'
import { refuseGateways, refuseOwnAddresses } from './gateway-reach.ts'
import { mediaFields, stripHeaders } from './media-fields.ts'
import { filledIn, overTls, preset } from './presets.ts'
import type { Definition } from './resource.ts'

const fields = field.table(
  {
    id: field.id,
    name: field.required(field.name, { example: 'concierge' }),
    extension: field.required(field.asText(extensionNumber), {
      about: 'The number of the agent.',
      example: '700',
    }),
    sip_uri: field.required(field.asText(sipUri), {
      about: 'SIP URI to which its calls are sent.',
      example: 'sip:concierge@agents.example',
    }),
    description: field.optional(field.text(500)),
    max_calls: field.of(field.limit, {
      default: 0,
      about: '0: unlimited. Further callers get 503.',
      example: 10,
    }),
    is_active: field.of(field.yesOrNo, { default: true }),
    tenant: field.tenant({ about: 'Absent: a platform agent, available to every tenant.' }),
    ...mediaFields,
    strip_headers: stripHeaders,
    preset: field.written(preset, { isOnlyAtCreation: true }),
    created_at: field.createdAt,
    updated_at: field.updatedAt,
  },
  { first: ['id', 'name', 'tenant'] },
)

const liveAgentView = fields.view.extend({ active_calls: count }).meta({ id: 'AiAgent' })

export type LiveAgent = z.output<typeof liveAgentView>

export const aiAgents: Definition<typeof fields.body, typeof fields.view> = {
  noun: 'AI agent',
  table: 'ai_agent',
  path: '/telephony/ai-agents',
  scope: 'agents',
  kind: 'agent',
  fields,
  hasOwnRoutes: true,
  found: { title: 'ai_agent.name', beside: ['ai_agent.extension'], screen: 'ai-agents' },
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
    instances: 'all',
    shown: liveAgentView,
    example: { ...fields.example, active_calls: 0 },
    body: { name: 'concierge', extension: '700', sip_uri: 'sip:concierge@agents.example' },
    patch: { max_calls: 20 },
  },
}
