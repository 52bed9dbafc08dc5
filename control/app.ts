/** The order of the middleware and every mount, on one screen. */
import { originateRoutes, placedCallRoutes, testCallRoutes } from './calls/originate-routes.ts'
import { kinds } from './resources/kinds.ts'
import { latest } from '../schema/clock.ts'
import type { OcsPort } from '../schema/contracts/charging.ts'
import { Hono, type Context, type MiddlewareHandler } from 'hono'
import { auditRoutes, auditTrail, mutatingMethods } from './changes/audit.ts'
import type { OpenedAccess } from './access.ts'
import { authenticate, revalidator } from './auth/authenticate.ts'
import { keyRoutes } from './resources/key-routes.ts'
import { clientLoginRoutes, loginRoutes } from './auth/login-routes.ts'
import { secondFactorRoutes } from './auth/second-factor-routes.ts'
import { sessionRoutes } from './auth/session-routes.ts'
import { singleSignOnRoutes } from './resources/single-sign-on-routes.ts'
import { userRoutes } from './resources/user-routes.ts'
import { causeRoutes } from './observe/causes/cause-routes.ts'
import { findingRoutes } from './observe/causes/finding-routes.ts'
import { changeRoutes } from './changes/change-routes.ts'
import { spendingCapRoutes } from './resources/spending-cap-routes.ts'
import { clientRoutes } from './money/client-routes.ts'
import { customerRoutes } from './money/customer-routes.ts'
import { ocsRoutes } from './money/ocs-routes.ts'
import {
  alertRoutes,
  paymentWebhookRoutes,
  type PaymentRoutesDeps,
} from './money/payment-routes.ts'
import type { Reratings } from './resources/reratings/reratings.ts'
import type { RateImports } from './resources/rate-imports.ts'
import { rateRoutes } from './resources/rate-routes.ts'
import type { EventFeed } from './observe/events/event-feed.ts'
import type { EventHub } from './observe/events/event-hub.ts'
import { answerQuestions, eventRoutes } from './observe/events/event-routes.ts'
import { consoleRoutes } from './console/console-routes.ts'
import {
  keyHealthRoute,
  probeRoutes,
  publicHealthRoute,
  settingsRoutes,
} from './observe/health-routes.ts'
import type { ControlEnv, Step } from './http/control-env.ts'
import { noteActivity } from './auth/key-usage.ts'
import { rateLimit } from './auth/rate-limit.ts'
import { tenantScope } from './auth/tenants.ts'
import { recordingPath, recordingRoutes } from './calls/recording-routes.ts'
import { callRoutes } from './calls/call-routes.ts'
import { callStatusRoutes } from './calls/call-status.ts'
import { simulateRoutes } from './calls/simulate.ts'
import { spyRoutes } from './calls/spy-routes.ts'
import { traceRoutes } from './calls/trace.ts'
import { vconRoutes } from './calls/vcon.ts'
import { reportRoutes } from './reports/report-routes.ts'
import { searchRoutes } from './search/search-routes.ts'
import { QUESTIONS_PATH } from './instances/questions.ts'
import { admittedAddress, butInstances } from './instances/admit-instance.ts'
import { openApiRoutes } from './openapi-routes.ts'
import { frontPage, pagePolicy } from './http/openapi-pages.ts'
import { instanceRoutes } from './instances/membership.ts'
import { decisionRoutes } from './agents/proposals/decision-routes.ts'
import { proposalRoutes } from './agents/proposals/proposal-routes.ts'
import { banRoutes } from './resources/ban-routes.ts'
import { dispatcherRoutes } from './resources/dispatcher-routes.ts'
import { metricsRoute, telemetryRoutes } from './observe/telemetry/telemetry-routes.ts'
import type { Telemetry } from './observe/telemetry/telemetry.ts'
import type { McpSubscriptions } from './agents/mcp/subscriptions.ts'
import { agentToolRoutes, type openTools } from './open-tools.ts'
import { webhookRoutes } from './webhooks/webhook-routes.ts'
import {
  bodyLimit,
  butPreflight,
  inOrder,
  correlationId,
  cors,
  customerEdge,
  errorHandler,
  notFoundHandler,
  preflight,
  securityHeaders,
  writeGate,
} from './http/front.ts'
import { canonicalPath, KnownPathsRouter } from './http/paths.ts'
import { extensionRoutes } from './resources/extension-routes.ts'
import type { ConsoleFiles } from './console/console-files.ts'
import { type WithOthers, countsOfPeers } from './instances/other-instances.ts'
import type { Platform } from './http/platform.ts'
import type { Reports } from './reports/reports.ts'
import type { Webhooks } from './webhooks/webhooks.ts'
import { alertNoticeRoutes } from './alerts/alert-routes.ts'
import type { Alerts } from './alerts/alerts.ts'
import type { ChangeDeps } from './changes/kinds.ts'
import { aiAgents } from './resources/ai-agents.ts'
import { carriers, withLiveStatus } from './resources/carriers.ts'
import { identityProviderRoutes } from './resources/identity-provider-routes.ts'
import { outboundRoutes, withQuality } from './resources/outbound-routes.ts'
import { numberRoutes } from './resources/number-routes.ts'
import { nouns } from './resources/nouns.ts'
import type { AnyDefinition } from './resources/resource.ts'
import { resourceRoutes } from './resources/resource-routes.ts'
import { routingWebhookRoutes } from './resources/routing-webhook-routes.ts'
import { savedViewRoutes } from './resources/saved-view-routes.ts'
import { publishedCertificateRoute, stirKeyRoutes } from './resources/stir-routes.ts'

export type ControlApp = Hono<ControlEnv>

/** The parts that the server shares with the routes. */
export interface ApiParts extends ReturnType<typeof openTools> {
  readonly hub: EventHub
  readonly feed: EventFeed
  readonly subscriptions: McpSubscriptions
  /** Undefined: another OCS has prices and wallets. */
  readonly reratings: Reratings | undefined
}

/** The whole control API. */
export function createApi(
  deps: ControlDeps,
  access: OpenedAccess,
  telemetry: Telemetry,
  { hub, feed, subscriptions, toolbox, proposals, reratings }: ApiParts,
): ControlApp {
  const { store, now, steadyNow, engine, version } = deps
  const app = front(deps, access, telemetry)
  if (deps.others !== undefined) app.use(QUESTIONS_PATH, answerQuestions({ ...deps, feed }))

  app.route('/', publicHealthRoute(version))
  app.route('/', probeRoutes(engine, deps))
  app.route('/', metricsRoute(telemetry, deps.instances, deps.certificates))
  app.route('/api/v1', publishedCertificateRoute(engine))
  app.route('/', openApiRoutes(app, version, deps.console))
  app.route(
    '/',
    consoleRoutes(deps.console, (c) =>
      c.html(frontPage(version), 200, { 'Content-Security-Policy': pagePolicy }),
    ),
  )
  app.route('/api/v1', keyHealthRoute(version))
  app.route('/api/v1', telemetryRoutes({ telemetry, others: deps.others }))
  app.route('/api/v1', loginRoutes({ ...access, now, steadyNow }))
  app.route('/api/v1', secondFactorRoutes({ ...access, now, steadyNow }))
  app.route('/api/v1', sessionRoutes({ ...access, now, steadyNow }))
  app.route('/api/v1', singleSignOnRoutes({ ...deps, ...access }))
  app.route('/api/v1', savedViewRoutes({ store, now }))
  app.route('/api/v1', userRoutes({ ...access, store, now }))
  app.route('/api/v1', auditRoutes(access.audit))
  const { keys, usage, tenants } = access
  const changeDeps = { ...deps, kinds, keys, usage, tenants, reratings }
  app.route('/api/v1', keyRoutes(changeDeps))
  app.route('/api/v1', changeRoutes(changeDeps))
  app.route('/api/v1', settingsRoutes(deps))
  app.route('/api/v1', instanceRoutes(deps))
  app.route('/api/v1', banRoutes(changeDeps))
  app.route('/api/v1', dispatcherRoutes(changeDeps))
  app.route('/api/v1', causeRoutes(changeDeps))
  app.route('/api/v1', findingRoutes(deps))
  app.route('/api/v1', testCallRoutes(deps))
  app.route('/api/v1', placedCallRoutes(deps))
  app.route('/api/v1', plainResourceRoutes(changeDeps))
  app.route('/api/v1', webhookRoutes(deps))
  app.route('/api/v1', alertNoticeRoutes(changeDeps))
  app.route('/api/v1', extensionRoutes(changeDeps))
  app.route('/api/v1', callRoutes(changeDeps))
  app.route('/api/v1', originateRoutes(deps))
  app.route('/api/v1', callStatusRoutes(deps))
  const revalidate = (c: Context<ControlEnv>) =>
    revalidator(c, 'calls:read', access, () => latest(deps))
  app.route(
    '/api/v1',
    eventRoutes(deps, hub, revalidate, () => void (telemetry.refused.eventReaders += 1)),
  )
  app.route('/api/v1', traceRoutes(deps))
  app.route('/api/v1', vconRoutes(deps))
  app.route('/api/v1', spyRoutes(deps))
  app.route('/api/v1', simulateRoutes(deps))
  app.route('/api/v1', recordingRoutes(deps))
  app.route('/api/v1', reportRoutes(deps))
  app.route('/api/v1', searchRoutes(deps))
  app.route('/', agentToolRoutes(deps, access, toolbox, subscriptions))
  app.route('/api/v1', proposalRoutes({ proposals, others: deps.others }))
  app.route('/', decisionRoutes(proposals, { ...deps, ...access }))
  if (deps.ocs !== undefined && reratings !== undefined)
    mountBilling(app, { ...deps, ...access, kinds, reratings, ocs: deps.ocs })
  app.route('/api/client', clientLoginRoutes({ ...access, now, steadyNow }))
  return app
}

/** Mounts, on both listeners, the requests of customers and of their payment provider. */
function mountForCustomers(app: ControlApp, deps: PaymentRoutesDeps): void {
  app.route('/api/client', clientRoutes(deps))
  app.route('/api/client', paymentWebhookRoutes(deps))
}

/** Customers and rates belong to the OCS in charge. */
function mountBilling(
  app: ControlApp,
  deps: ControlDeps &
    OpenedAccess &
    ChangeDeps & { readonly ocs: OcsPort; readonly reratings: Reratings },
): void {
  app.route('/api/v1', customerRoutes(deps))
  app.route('/api/v1', rateRoutes(deps))
  app.route('/api/v1', spendingCapRoutes(deps))
  app.route('/api/ocs', ocsRoutes(deps.ocs, deps))
  app.route('/api/v1', alertRoutes(deps))
  mountForCustomers(app, deps)
}

/** The public edge for customers: `/api/client/*` and `GET /health`. */
export function createEdge(
  deps: ControlDeps,
  access: OpenedAccess,
  telemetry: Telemetry,
): ControlApp {
  const { now, steadyNow, version } = deps
  const app = front({ ...deps, others: undefined }, access, telemetry, customerEdge())

  app.route('/', publicHealthRoute(version))
  app.route('/api/client', clientLoginRoutes({ ...access, now, steadyNow }))
  if (deps.ocs !== undefined) mountForCustomers(app, { ...deps, ocs: deps.ocs })
  return app
}

/** Runs before every route; from here on each response has its headers. */
function front(
  deps: ControlDeps,
  access: OpenedAccess,
  telemetry: Telemetry,
  ...edge: readonly Step[]
): ControlApp {
  const { log, randomBytes, others } = deps
  const app = new Hono<ControlEnv>({ getPath: canonicalPath, router: new KnownPathsRouter() })
  const audited = auditTrail(access.audit, deps, () => void (telemetry.refused.auditEntries += 1))
  app.on([...mutatingMethods], '*', audited)
  const auditReads: MiddlewareHandler<ControlEnv> = (c, next) =>
    c.req.method === 'GET' ? audited(c, next) : next()
  app.use(`/api/v1${recordingPath}`, auditReads)
  const limited = rateLimit(access.limits, access.budgets, access.usage, deps)
  app.use(
    inOrder(
      telemetry.requests.note(),
      correlationId(randomBytes),
      cors(),
      securityHeaders(),
      ...(others === undefined ? [] : [others.admit]),
      authenticate(
        access.verifier,
        access.sessions,
        others === undefined ? access.addressOf : admittedAddress(access.addressOf),
        () => latest(deps),
      ),
      noteActivity(access.activity),
      access.idempotency.offer(),
      others === undefined ? limited : butInstances(limited),
      ...edge,
      butPreflight(tenantScope(access.tenants), bodyLimit()),
    ),
  )
  app.on([...mutatingMethods], '*', writeGate(deps.store, deps.schedule))
  app.options('*', preflight)
  app.onError(errorHandler(log))
  app.notFound(notFoundHandler(app))
  return app
}

/** Dependencies of the API: those of its routes, and the parts that are built with it. */
export interface ControlDeps extends Platform, WithOthers {
  readonly webhooks: Webhooks
  readonly alerts: Alerts
  readonly reports: Reports
  readonly rateImports: RateImports
  /** Undefined: it has not been built. */
  readonly console: ConsoleFiles | undefined
}

/**
 * Carriers and agents, with their live calls on all instances; and what has no more than its rows.
 */
function plainResourceRoutes(deps: ChangeDeps & WithOthers & Pick<ControlDeps, 'rateImports'>) {
  const app = new Hono<ControlEnv>()
  for (const noun of Object.values<AnyDefinition>(nouns))
    if (noun.hasOwnRoutes === undefined) app.route('/', resourceRoutes(deps, noun))
  return app
    .route('/', carrierRoutes(deps))
    .route('/', outboundRouteRoutes(deps))
    .route('/', agentRoutes(deps))
    .route('/', routingWebhookRoutes(deps))
    .route('/', numberRoutes(deps))
    .route('/', stirKeyRoutes(deps))
    .route('/', identityProviderRoutes(deps))
}

const carrierRoutes = (deps: ChangeDeps & WithOthers) =>
  resourceRoutes(deps, carriers, {
    show: (carrier) => withLiveStatus(carrier, deps.engine),
    async withOthers(c, listed) {
      const ids = listed.map(({ id }) => id)
      const more = await countsOfPeers(c, deps.others, 'carriers', ids)
      if (more === undefined) return listed
      return listed.map(({ status, ...carrier }) => ({
        ...carrier,
        status: { ...status, active_calls: status.active_calls + more(carrier.id) },
      }))
    },
  })

const outboundRouteRoutes = (deps: ChangeDeps) =>
  resourceRoutes(deps, outboundRoutes, { show: (route) => withQuality(route, deps.engine) })

const agentRoutes = (deps: ChangeDeps & WithOthers) =>
  resourceRoutes(deps, aiAgents, {
    show: (agent) => ({ ...agent, active_calls: deps.engine.calls.countByAgent(agent.id) }),
    async withOthers(c, listed) {
      const ids = listed.map(({ id }) => id)
      const more = await countsOfPeers(c, deps.others, 'agents', ids)
      if (more === undefined) return listed
      return listed.map((agent) => ({
        ...agent,
        active_calls: agent.active_calls + more(agent.id),
      }))
    },
  })
