/** Every noun that is one definition. Routes, seed file, undo and console form follow from it. */
import { aiAgents } from './ai-agents.ts'
import { alertChannels } from './alert-channels.ts'
import { alertRules } from './alert-rules.ts'
import { carriers } from './carriers.ts'
import { customers } from './customers.ts'
import { dispatcherSets } from './dispatcher-sets.ts'
import { extensions } from './extensions.ts'
import { identityProviders } from './identity-providers.ts'
import { inboundRoutes } from './inbound-routes.ts'
import { numbers } from './numbers.ts'
import { outboundRoutes } from './outbound-routes.ts'
import { ratePlans } from './rate-plans.ts'
import { rates } from './rates.ts'
import { routingWebhooks } from './routing-webhooks.ts'
import { stirAuthorities } from './stir-authorities.ts'
import { stirKeys } from './stir-keys.ts'
import { tenants } from './tenants.ts'

/** The nouns by their names in a seed file, each after those to which it may refer. */
export const nouns = {
  tenants,
  rate_plans: ratePlans,
  rates,
  customers,
  dispatcher: dispatcherSets,
  carriers,
  outbound_routes: outboundRoutes,
  extensions,
  ai_agents: aiAgents,
  inbound_routes: inboundRoutes,
  numbers,
  routing_webhooks: routingWebhooks,
  stir_keys: stirKeys,
  stir_authorities: stirAuthorities,
  alert_channels: alertChannels,
  alert_rules: alertRules,
  identity_providers: identityProviders,
}
