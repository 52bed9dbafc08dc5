/** Users, keys, and records of their requests. */
import type { Defaulted, Flag, Id } from '../columns.ts'

export interface AccessTables {
  application_key: ApplicationKeyTable
  application_key_day: ApplicationKeyDayTable
  application_key_minute: ApplicationKeyMinuteTable
  application_key_previous: ApplicationKeyPreviousTable
  user: UserTable
  saved_view: SavedViewTable
  user_second_factor: UserSecondFactorTable
  user_recovery_code: UserRecoveryCodeTable
  user_session: UserSessionTable
  user_identity: UserIdentityTable
  sign_in_policy: SignInPolicyTable
  identity_provider: IdentityProviderTable
  jwt_denylist: JwtDenylistTable
  idempotent_answer: IdempotentAnswerTable
  idempotent_claim: IdempotentClaimTable
  audit_entry: AuditEntryTable
}

export interface ApplicationKeyTable {
  id: Id
  uuid: string
  kind: 'sbc' | 'pbx' | 'billing'
  name: string
  description: string | null
  key_prefix: string
  /** SHA-256 of the token: the only stored form of it. */
  key_hash: Buffer
  /** JSON array of scopes. */
  scopes: string
  rate_limit_rpm: Defaulted<number>
  expires_at: number | null
  is_active: Defaulted<Flag>
  revoked_at: number | null
  /** Until it is resumed; `is_active` is independent of it. */
  suspended_at: number | null
  suspended_by: string | null
  tenant_id: number | null
  domain: string | null
  /** JSON array of CIDRs; `[]`: any address. */
  allowed_ips: Defaulted<string>
  owner_username: string | null
  request_count: Defaulted<number>
  last_used_at: number | null
  created_at: number
}

export interface UserTable {
  id: Id
  username: string
  /** argon2id. */
  password_hash: string
  role: 'admin' | 'operator' | 'auditor'
  tenant_id: number | null
  is_active: Defaulted<Flag>
  created_at: number
  updated_at: number
}

/** Views of a screen of the console that a user keeps by a name. */
interface SavedViewTable {
  user_id: number
  screen: 'calls'
  name: string
  /** Query of the address, without `?`. */
  query: string
  updated_at: number
}

interface UserSecondFactorTable {
  user_id: number
  /** Base32, encrypted. */
  secret: string
  /** Null: the user has not entered a code of it yet, and is not asked for one. */
  confirmed_at: number | null
  /** Number of the 30 seconds of the last code that was used: no code is used twice. */
  last_step: number
  created_at: number
}

/** A code that was used is removed. */
interface UserRecoveryCodeTable {
  user_id: number
  /** SHA-256. */
  code_hash: Buffer
}

/** Sessions as people see them. Whether one has ended is said by `jwt_denylist`. */
export interface UserSessionTable {
  jti: string
  user_id: number
  /** Mark of the password with which it began: it ends with that password. */
  password_mark: string
  begun_at: number
  last_seen_at: number
  /** End of its newest token. */
  expires_at: number
  address: string
  user_agent: string | null
  /** Null: it began with a password. */
  identity_provider_id: number | null
}

/** Who a user is at an issuer of OpenID Connect. */
interface UserIdentityTable {
  id: Id
  user_id: number
  /** Tenant of the provider; null: a provider of the platform. */
  owner_id: number | null
  issuer: string
  subject: string
  created_at: number
}

interface SignInPolicyTable {
  id: Id
  /** Null: users of the platform. */
  tenant_id: number | null
  is_second_factor_required: Flag
  updated_at: number
}

export interface IdentityProviderTable {
  id: Id
  name: string
  tenant_id: number | null
  issuer: string
  client_id: string
  /** Encrypted; null: the client has none. */
  client_secret: string | null
  /** JSON array. */
  scopes: string
  role_claim: string
  username_claim: string
  /** JSON array. */
  role_mappings: string
  is_enabled: Flag
  created_at: number
  updated_at: number
}

/** Tokens replaced by a rotation that are valid until their grace period ends. */
interface ApplicationKeyPreviousTable {
  id: Id
  application_key_id: number
  key_prefix: string
  key_hash: Buffer
  expires_at: number
}

/** Requests of a key in the last hour, by minute. */
interface ApplicationKeyMinuteTable {
  application_key_id: number
  /** Minutes since 1970-01-01 UTC. */
  minute: number
  requests: number
}

/** Successful requests of a key by day; older days are removed. */
interface ApplicationKeyDayTable {
  application_key_id: number
  /** Days since 1970-01-01 UTC. */
  day: number
  requests: number
}

/** Sessions that were logged out before their token expired. */
interface JwtDenylistTable {
  jti: string
  expires_at: number
}

/**
 * The instance that carries out a request with an `Idempotency-Key`, when several instances may
 * receive it at once.
 */
interface IdempotentClaimTable {
  actor: string
  operation: string
  key_hash: Buffer
  request_hash: Buffer
  /** Random: of one request of one instance. */
  claim: Buffer
  claimed_until: number
}

/** First responses to requests with an `Idempotency-Key`, stored for 24 hours. */
interface IdempotentAnswerTable {
  actor: string
  /** Method and path. */
  operation: string
  /** SHA-256 of the `Idempotency-Key`. */
  key_hash: Buffer
  /** SHA-256 of the body: the same key with another body is a conflict. */
  request_hash: Buffer
  status: number
  /** The response, encrypted with what only its caller can present again. */
  sealed: Buffer
  created_at: number
}

/** Append only: triggers reject UPDATE and DELETE. */
export interface AuditEntryTable {
  id: Id
  at: number
  /**
   * `key:<uuid>`, `user:<username>`, `user:<tenant>/<username>`, `customer:<id>`, `anonymous`,
   * `console`, or `platform`.
   */
  actor: string
  /** Name of a key and the start of its token, at that time. */
  actor_name: string | null
  actor_key_prefix: string | null
  tenant_id: number | null
  /** `console` for a command. */
  address: string
  /**
   * Method and route, such as `PATCH /api/v1/application-keys/:uuid`, `tool <name>`, or `command
   * <name>`.
   */
  action: string
  /** The path as requested, or the arguments of the tool. */
  target: string
  outcome: 'success' | 'refused' | 'failed'
  /** The exit code of a command. */
  status: number
  code: string | null
  /** SHA-256, base64url, of the JSON as the API shows it. */
  before_digest: string | null
  after_digest: string | null
  correlation_id: string
  /** The `change_entry` that was made or undone. */
  change_id: string | null
  /** Reason as given with the change. */
  reason: string | null
  /** A sentence about the deed; null: the entry that `change_id` names has it, or nothing has. */
  effect: Defaulted<string | null>
}
