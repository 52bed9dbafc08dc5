/** The forms that open a session: a password, perhaps a second factor; or an identity provider. */
import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import { session } from '../api/session.ts'
import {
  beginEnrolment,
  enterConsole,
  offeredProviders,
  sendCode,
  signIn,
  type SignInStep,
} from '../api/sign-in.ts'
import type { Enrolment, OfferedProvider, SignInChallenge } from '../api/views.ts'
import { CodeField, NewAuthenticator, RecoveryCodes } from '../parts/authenticator.tsx'
import { enteredIn, Field, onForm, textIn } from '../parts/form.tsx'
import { address, setQuery } from '../parts/router.ts'
import { Problem } from '../parts/text.tsx'
import { visibleText } from '../parts/visible-text.ts'

/** Why an identity provider has sent the browser back without a session. */
const refusals: Readonly<Record<string, string>> = {
  expired: 'That sign-in took too long, or was begun in another browser. Begin again.',
  provider_unavailable:
    'The identity provider gave no usable answer. Try again, or use a password.',
  provider_refused: 'The identity provider did not sign you in.',
  no_role: 'You have no role here. Ask an administrator for a group that has one.',
  inactive: 'Your user is switched off here.',
  unknown_tenant: 'Your group belongs to a tenant that is not there. Ask an administrator.',
  last_admin: 'You are the last administrator: your role cannot be taken away.',
  no_name: 'There is no free user name for you. Ask an administrator.',
  too_many_users: 'Your tenant has as many users as it may have.',
}

export function SignIn() {
  const step = useSignal<Exclude<SignInStep, { kind: 'failed' }> | undefined>(undefined)
  const problem = useSignal<string | undefined>(refusals[address.value.query['sign_in'] ?? ''])
  const isBusy = useSignal(false)

  const take = async (work: () => Promise<SignInStep>): Promise<void> => {
    if (isBusy.value) return
    isBusy.value = true
    const next = await work()
    isBusy.value = false
    problem.value = next.kind === 'failed' ? next.message : undefined
    if (next.kind !== 'failed') step.value = next
    // Only the password makes another challenge.
    else if (next.code === 'invalid_challenge') step.value = undefined
    if (next.kind === 'done' && 'sign_in' in address.value.query) setQuery({ sign_in: undefined })
  }
  const { value: now } = step
  const parts = { problem: problem.value, isBusy: isBusy.value, take }
  return (
    <main class="sign-in" id="main">
      <h1>Tollgate</h1>
      {now?.kind === 'challenge' ? (
        <SecondFactor challenge={now.challenge} {...parts} />
      ) : now?.kind === 'recovery-codes' ? (
        <Step {...parts} action="Go on" onSubmit={() => take(enterConsole)}>
          <RecoveryCodes codes={now.codes} />
        </Step>
      ) : (
        <Password {...parts} />
      )}
      <p>
        <a href="/guide">Guide</a> · <a href="/docs">API reference</a>
      </p>
    </main>
  )
}

interface StepParts {
  readonly problem: string | undefined
  readonly isBusy: boolean
  readonly take: (work: () => Promise<SignInStep>) => Promise<void>
}

interface StepProps extends StepParts {
  readonly action: string
  readonly onSubmit: (form: FormData) => Promise<void>
  readonly children: ComponentChildren
}

const Step = ({ action, problem, isBusy, onSubmit, children }: StepProps) => (
  <form onSubmit={onForm((form) => void onSubmit(form))}>
    {children}
    <Problem message={problem} />
    <button class="primary" disabled={isBusy}>
      {action}
    </button>
  </form>
)

function Password(parts: StepParts) {
  const tenant = useSignal(address.value.query['tenant'] ?? '')
  const isExpired = session.value.kind === 'signed-out' && session.value.isExpired
  const submit = (form: FormData): Promise<void> =>
    parts.take(() =>
      signIn(textIn(form, 'username'), enteredIn(form, 'password'), textIn(form, 'tenant')),
    )
  return (
    <>
      <p role="status">
        {isExpired ? 'Your session has ended. Sign in to go on where you were.' : ''}
      </p>
      <Step {...parts} action="Sign in" onSubmit={submit}>
        <Field
          label="User"
          name="username"
          autoComplete="username"
          required
          maxLength={100}
          autoFocus
        />
        <Field
          label="Password"
          name="password"
          type="password"
          autoComplete="current-password"
          required
          maxLength={256}
        />
        <Field
          label="Tenant"
          hint="optional"
          name="tenant"
          maxLength={64}
          autoComplete="organization"
          value={tenant.value}
          onChange={(event) => (tenant.value = event.currentTarget.value.trim())}
        />
      </Step>
      <Providers tenant={tenant.value} />
    </>
  )
}

/** Links, not requests: the browser goes to the provider, and comes back with a session. */
function Providers({ tenant }: { tenant: string }) {
  const offered = useSignal<readonly OfferedProvider[]>([])
  useEffect(() => {
    let isWanted = true
    const load = async (): Promise<void> => {
      const found = await offeredProviders(tenant)
      if (isWanted) offered.value = found
    }
    void load()
    return () => (isWanted = false)
  }, [tenant])
  if (offered.value.length === 0) return null
  return (
    <p class="providers">
      {offered.value.map(({ id, name, start_url: start }) => (
        <a key={id} class="button" href={start}>
          Sign in with {visibleText(name, 60)}
        </a>
      ))}
    </p>
  )
}

function SecondFactor({ challenge, ...parts }: StepParts & { challenge: SignInChallenge }) {
  const isNew = challenge.second_factor === 'enrolment'
  const enrolment = useSignal<Enrolment | undefined>(undefined)
  useEffect(() => {
    if (!isNew) return
    void parts.take(async () => {
      const answer = await beginEnrolment(challenge.challenge)
      if (answer.kind === 'failed')
        return { kind: 'failed', message: answer.message, code: answer.code }
      if (answer.kind === 'ok') enrolment.value = answer.data
      return { kind: 'challenge', challenge }
    })
  }, [])
  return (
    <Step
      {...parts}
      action="Sign in"
      onSubmit={(form) => parts.take(() => sendCode(challenge.challenge, textIn(form, 'code')))}
    >
      {isNew && <p role="status">A second factor is required of you. Set it up now.</p>}
      {enrolment.value && <NewAuthenticator enrolment={enrolment.value} />}
      <CodeField
        hint={
          isNew ? 'six digits of the authenticator' : 'of the authenticator, or a recovery code'
        }
      />
    </Step>
  )
}
