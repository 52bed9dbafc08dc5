/** Margins by destination of all tenants together: each destination has calls of many tenants. */
export const forServer = `
INSERT INTO margin_sum (day, dimension, tenant_id, is_own, member, currency, carrier_currency,
  calls, billsec, losses, cost_micros, carrier_cost_micros)
SELECT day, dimension, -1, 0, member, currency, carrier_currency,
  sum(calls), sum(billsec), sum(losses),
  least(sum(cost_micros), 9000000000000000000), least(sum(carrier_cost_micros), 9000000000000000000)
FROM margin_sum WHERE dimension = 'destination'
GROUP BY day, dimension, member, currency, carrier_currency;
`
