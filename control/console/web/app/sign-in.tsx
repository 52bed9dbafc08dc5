/** The form that opens a session. */
import { useSignal } from '@preact/signals'
import { enteredIn, textIn } from '../parts/form.ts'
import { Problem } from '../parts/text.tsx'
import { session, signIn } from '../api/session.ts'

export function SignIn() {
  const problem = useSignal<string | undefined>(undefined)
  const isBusy = useSignal(false)
  const isExpired = session.value.kind === 'signed-out' && session.value.isExpired

  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault()
    if (isBusy.value || !(event.currentTarget instanceof HTMLFormElement)) return
    const form = new FormData(event.currentTarget)
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
      <form onSubmit={(event) => void submit(event)}>
        <label>
          User
          <input name="username" autoComplete="username" required maxLength={100} autoFocus />
        </label>
        <label>
          Password
          <input
            name="password"
            type="password"
            autoComplete="current-password"
            required
            maxLength={256}
          />
        </label>
        <label>
          Tenant <small>(optional)</small>
          <input name="tenant" maxLength={64} autoComplete="organization" />
        </label>
        <Problem message={problem.value} />
        <button class="primary" disabled={isBusy.value}>
          Sign in
        </button>
      </form>
      <p>
        <a href="/docs">API reference</a>
      </p>
    </main>
  )
}
