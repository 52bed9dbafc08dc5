import { newPassword, staffRole, username } from '../../control/auth/users/user-routes.ts'
import { addUser } from '../first-admin.ts'
import { type Command, type Input, WrongUsage } from './command.ts'
import { withAudit } from './audited.ts'

export const userCreate: Command = {
  name: 'user create',
  summary: 'Makes a user of the API; the password is read from standard input.',
  createsDatabase: true,
  options: {
    username: { value: 'NAME', meaning: '1 to 64 letters, digits or . _ @ + -', isRequired: true },
    role: { value: 'admin|operator|auditor', meaning: 'what the user may do', isRequired: true },
  },
  run: async (input, world) => {
    const name = readOption(input, 'username', username)
    const role = readOption(input, 'role', staffRole)
    const typed = newPassword.safeParse((await world.readInput()).replace(/\r?\n$/, ''))
    if (!typed.success)
      throw new WrongUsage('the password on standard input must have 8 to 128 characters')
    const user = { username: name, password: typed.data, role }
    await withAudit(
      world,
      { action: 'user create', target: `${name} (${role})` },
      async (store) => {
        const isNew = await addUser(store, user, world.now())
        if (!isNew) throw new Error(`there is a user ${name} already`)
      },
    )
    world.print(`created user ${name} with the role ${role}`)
    return 0
  },
}

interface Form<T> {
  safeParse(value: unknown): { success: true; data: T } | { success: false }
}

function readOption<T>({ options }: Input, name: string, form: Form<T>): T {
  const result = form.safeParse(options[name])
  if (result.success) return result.data
  throw new WrongUsage(`--${name} is "${options[name]}"; see tollgate user create --help`)
}
