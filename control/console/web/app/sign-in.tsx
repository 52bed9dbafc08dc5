/** The form that opens a session. */
import { useSignal } from '@preact/signals'
import { enteredIn, Field, onForm, textIn } from '../parts/form.tsx'
import { Problem } from '../parts/text.tsx'
import { session, signIn } from '../api/session.ts'

export function SignIn() {
  const problem = useSignal<string | undefined>(undefined)
  const isBusy = useSignal(false)
  const isExpired = session.value.kind === 'signed-out' && session.value.isExpired

  const submit = async (form: FormData): Promise<void> => {
    if (isBusy.value) return
    isBusy.value = true
    problem.value = await signIn(
      textIn(form, 'username'),
      enteredIn(form, 'password'),
      textIn(form, 'tenant'),
    )
    isBusy.value = false
  }
  return (
    <main class="sign-in" id="main">
      <h1>Tollgate</h1>
      <p role="status">
        {isExpired ? 'Your session has ended. Sign in to go on where you were.' : ''}
      </p>
      <form onSubmit={onForm((form) => void submit(form))}>
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
        />
        <Problem message={problem.value} />
        <button class="primary" disabled={isBusy.value}>
          Sign in
        </button>
      </form>
      <p>
        <a href="/guide">Guide</a> · <a href="/docs">API reference</a>
      </p>
    </main>
  )
}
