/** Everything that admits requests, built once per process and shared by both listeners. */
import { timeToText } from '../schema/columns.ts'
import { AuditLog } from './changes/audit.ts'
import type { Platform } from './http/platform.ts'
import type { Webhooks } from './webhooks/webhooks.ts'
import type { OutgoingEvent } from '../schema/contracts/engine.ts'
import type { AppKey } from './auth/app-key.ts'
import { Idempotency } from './auth/idempotency.ts'
import { RateLimits } from './auth/rate-limit.ts'
import { RequestWindows } from './auth/rate-window.ts'
import { clientAddress } from './auth/authenticate.ts'
import { WorkBudgets } from './http/work-budget.ts'
import { KeyVerifier } from './auth/verify-key.ts'
import { KeyStore } from './auth/key-store.ts'
import { KeyUsage } from './auth/key-usage.ts'
import { KeyActivity } from './auth/key-activity.ts'
import { ApprovalLinks } from './agents/proposals/approval-links.ts'
import { IdentityStore } from './auth/single-sign-on/identity-store.ts'
import { ProviderClients } from './auth/single-sign-on/provider-clients.ts'
import { SignInAttempts } from './auth/single-sign-on/sign-in-attempts.ts'
import { TenantScope } from './auth/tenants.ts'
import { SecondFactors } from './auth/second-factors.ts'
import { jwtSecret, Sessions } from './auth/sessions.ts'
import { SignInChallenges } from './auth/sign-in-challenges.ts'
import { LoginGuard } from './auth/login-guard.ts'
import { PasswordCheck } from './auth/password-check.ts'
import { UserStore } from './auth/user-store.ts'

/** Guesses at the second factor of one user in fifteen minutes, from all addresses. */
const MAX_GUESSES_OF_ALL = 20

export type OpenedAccess = ReturnType<typeof openAccess>

export function openAccess(
  deps: Pick<
    Platform,
    | 'store'
    | 'changes'
    | 'now'
    | 'steadyNow'
    | 'randomBytes'
    | 'requestShares'
    | 'settings'
    | 'log'
    | 'instances'
    | 'schedule'
    | 'resolve'
  > & { readonly webhooks: Webhooks },
) {
  const { store, now, steadyNow, randomBytes } = deps
  const keys = new KeyStore(store, {
    onWrite: () => verifier.clear(),
    onRevoked: (key) => deps.webhooks.write(keyRevoked(key, now())),
  })
  const unconfirmedMs = (): number => deps.instances.heartbeatAgeMs
  const verifier = new KeyVerifier(keys, unconfirmedMs)
  const users = new UserStore(store)
  const readSecret = () => jwtSecret(store, deps.settings.jwtSecret, randomBytes)
  const sessions = new Sessions(store, users, readSecret, randomBytes)
  const challenges = new SignInChallenges(users, readSecret)
  const passwords = new PasswordCheck()
  // Another process wrote, such as `tollgate key create`.
  deps.changes?.follow({
    topics: ['application_key', 'application_key_previous', 'tenant'],
    reload: async () => verifier.clear(),
  })
  const tenants = new TenantScope(store, unconfirmedMs)
  deps.changes?.follow({
    topics: ['tenant', 'tenant_domain'],
    reload: async () => tenants.clear(),
  })
  const windows = new RequestWindows(deps)
  const factors = new SecondFactors({
    store,
    randomBytes,
    guard: new LoginGuard(windows),
    guardOfAll: new LoginGuard(windows, MAX_GUESSES_OF_ALL),
  })
  const clients = new ProviderClients({
    steadyNow,
    schedule: deps.schedule,
    resolve: deps.resolve ?? (() => Promise.resolve([])),
    allowPrivate: deps.settings.allowsPrivateTargets === true,
  })
  const usage = new KeyUsage(store, now)
  const activity = new KeyActivity(store, now)
  const audit = new AuditLog(store, (entry, error) =>
    deps.log('error', 'audit: an entry cannot be stored', { entry, error }),
  )
  const idempotency = new Idempotency(store, steadyNow, randomBytes, deps.instances.identity)
  return {
    keys,
    usage,
    activity,
    users,
    verifier,
    sessions,
    factors,
    challenges,
    clients,
    identities: new IdentityStore({ store, users, randomBytes }),
    attempts: new SignInAttempts(readSecret, randomBytes),
    links: new ApprovalLinks({ store, users, readSecret, publicUrl: deps.settings.publicUrl }),
    passwords,
    guard: new LoginGuard(windows),
    tenants,
    addressOf: clientAddress(deps.settings.trustedProxies),
    limits: new RateLimits(windows),
    budgets: new WorkBudgets(deps.steadyNow),
    audit,
    idempotency,
    /** Called before the first request. */
    async prepare(): Promise<void> {
      await sessions.prepare()
      await passwords.prepare()
    },
    /** Called every `USAGE_FLUSH_INTERVAL_MS`. */
    async tick(): Promise<void> {
      await audit.flush()
      await usage.flush()
      await activity.flush()
      await sessions.seen.flush()
      await idempotency.flush()
    },
    /** Called at the end. */
    async close(): Promise<void> {
      await audit.close()
      await usage.flush()
      await activity.flush()
      await sessions.seen.flush()
      await idempotency.flush()
    },
  }
}

const keyRevoked = (key: AppKey, now: number): OutgoingEvent => ({
  type: 'key.revoked',
  tenantId: key.tenantId,
  data: {
    uuid: key.uuid,
    name: key.name,
    key_prefix: key.keyPrefix,
    revoked_at: timeToText(now),
  },
})
