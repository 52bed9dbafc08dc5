/** Inbound routes: where a call from a carrier goes (SPECIFICATION.md §4.7 and §10.2). */
import { sql } from 'kysely'
import { verifications } from '../../schema/contracts/field-values.ts'
import { domain, prefix } from '../http/fields.ts'
import * as field from '../http/field-table.ts'
import { agentJoin, targetFields, targetOf } from './call-target.ts'
import { badReference } from './references.ts'
import type { Definition, ViewOf } from './resource.ts'
import { refuseForeignDomain } from './tenancy.ts'

const fields = field.table(
  {
    id: field.id,
    name: field.required(field.name, { example: 'main number' }),
    tenant: field.tenant(),
    carrier: field.refersTo('carrier', { about: 'Absent: any carrier.' }),
    carrier_id: field.idOf(),
    prefix: field.optional(field.asText(prefix), {
      about: 'Start of the called number; absent: every number.',
      example: '4930',
    }),
    domain: field.optional(field.asText(domain), {
      about: 'Domain of the Request-URI. Absent: every domain.',
    }),
    verification: field.optional(field.oneOf(verifications), {
      about:
        'What the Identity headers of a call must have proved. Absent: anything. Only calls of ' +
        'carriers with `stir.verify` have proved anything, or nothing.',
    }),
    priority: field.of(field.integer(1, 100), {
      default: 10,
      about: 'A lower number is preferred.',
    }),
    is_active: field.of(field.yesOrNo, { default: true }),
    ...targetFields(1),
    created_at: field.createdAt,
  },
  { schemaId: 'InboundRoute' },
)

export type InboundRouteView = ViewOf<typeof fields.view>

export const inboundRoutes: Definition<typeof fields.body, typeof fields.view> = {
  noun: 'Inbound route',
  table: 'inbound_route',
  path: '/inbound-routes',
  scope: 'routes',
  fields,
  joins: agentJoin,
  selected: sql`ai_agent.name AS agent`,
  found: {
    title: 'inbound_route.name',
    beside: ['inbound_route.prefix', 'inbound_route.domain'],
    screen: 'inbound-routes',
  },
  search: ['inbound_route.name', 'prefix', 'inbound_route.domain'],
  order: ['inbound_route.name'],
  limits: ['inbound_routes'],
  async check(writing) {
    const { body: route, before, tenantId, deps } = writing
    if (route.domain !== before?.domain)
      await refuseForeignDomain(deps.store, route.domain, tenantId)
    const target = await targetOf({ ...writing, store: deps.store, table: 'inbound_route' })
    if (target === null)
      throw badReference('set_id', 'give exactly one of set_id, extension and agent')
    return { target_type: target[0], target: target[1] }
  },
  follow: ({ engine }, { id }) => engine.reloadRouting({ of: 'inbound_route', ids: [id] }),
  described: {
    tag: 'Routing',
    body: { name: 'main number', prefix: '4930', set_id: 1 },
    patch: { is_active: false },
  },
}
