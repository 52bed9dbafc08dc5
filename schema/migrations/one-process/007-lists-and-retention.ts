/**
 * Indexes for the lists of a tenant. The audit log allows deleting entries past their retention, and no
 * others.
 */
export const sql = `
CREATE INDEX user_tenant ON user (tenant_id);
CREATE INDEX application_key_tenant ON application_key (tenant_id);
CREATE INDEX dispatcher_set_tenant ON dispatcher_set (tenant_id, set_id);
CREATE INDEX carrier_tenant ON carrier (tenant_id, name);
CREATE INDEX outbound_route_tenant ON outbound_route (tenant_id, name);
CREATE INDEX inbound_route_tenant ON inbound_route (tenant_id, name);
CREATE UNIQUE INDEX rate_plan_tenant ON rate_plan (tenant_id, name);
DROP INDEX customer_tenant;
CREATE INDEX customer_tenant ON customer (tenant_id, name);
CREATE INDEX extension_number ON extension (extension, domain);
CREATE INDEX extension_tenant ON extension (tenant_id, extension, domain);
CREATE INDEX ai_agent_tenant ON ai_agent (tenant_id, name);
CREATE INDEX billing_alert_customer ON billing_alert (customer_id);

DROP TRIGGER audit_entry_no_delete;
CREATE TRIGGER audit_entry_no_delete BEFORE DELETE ON audit_entry
  WHEN OLD.at >= ifnull(
    (SELECT CAST(value AS INTEGER) FROM setting WHERE name = 'audit_kept_since'), 0)
  BEGIN SELECT RAISE(ABORT, 'audit entries are append-only'); END;
`
