/** Names are unique per tenant and among platform rows; different tenants may use the same name. */
import type { Relaxed } from '../../rebuild.ts'

const uniqueName = { part: 'name TEXT NOT NULL UNIQUE', replacement: 'name TEXT NOT NULL' } as const

export const relaxed: readonly Relaxed[] = [
  { table: 'rate_plan', ...uniqueName },
  { table: 'customer', ...uniqueName },
  { table: 'customer', part: 'email TEXT UNIQUE', replacement: 'email TEXT' },
  { table: 'carrier', ...uniqueName },
  { table: 'outbound_route', ...uniqueName },
  { table: 'inbound_route', ...uniqueName },
  { table: 'ai_agent', ...uniqueName },
  {
    table: 'dispatcher_set',
    part: 'endpoint_name TEXT NOT NULL UNIQUE',
    replacement: 'endpoint_name TEXT NOT NULL',
  },
  {
    table: 'user',
    part: 'username TEXT NOT NULL UNIQUE',
    replacement: 'username TEXT NOT NULL',
  },
]

/** By name first: the index also orders a list of all tenants. */
export const sql = `
CREATE UNIQUE INDEX rate_plan_name ON rate_plan (name, ifnull(tenant_id, 0));
CREATE INDEX rate_plan_order ON rate_plan (name);
CREATE UNIQUE INDEX customer_name ON customer (name, ifnull(tenant_id, 0));
CREATE UNIQUE INDEX customer_email ON customer (email, ifnull(tenant_id, 0));
CREATE UNIQUE INDEX carrier_name ON carrier (name, ifnull(tenant_id, 0));
CREATE UNIQUE INDEX outbound_route_name ON outbound_route (name, ifnull(tenant_id, 0));
CREATE UNIQUE INDEX inbound_route_name ON inbound_route (name, ifnull(tenant_id, 0));
CREATE UNIQUE INDEX ai_agent_name ON ai_agent (name, ifnull(tenant_id, 0));
CREATE UNIQUE INDEX user_name ON user (username, ifnull(tenant_id, 0));
CREATE UNIQUE INDEX dispatcher_set_name ON dispatcher_set (endpoint_name, ifnull(tenant_id, 0));
`
