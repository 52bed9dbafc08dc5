/**
 * Identity providers, as a person uses them in the console. The file is apart from that of second
 * factors: an address may sign in ten times a minute.
 */
import { connect, createServer } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openConsole, row } from '../support/console-browser.ts'
import { admin, shareConsole } from '../support/console-rig.ts'
import { freePort } from '../support/free-port.ts'
import { clientId, clientSecret, openProvider } from '../support/openid-provider.ts'

/** The program knows the address of people at its start, and its own port only later. */
const publicPort = await freePort()
const publicUrl = `http://127.0.0.1:${publicPort}`
const { rig, signedIn } = shareConsole({
  PUBLIC_URL: publicUrl,
  WEBHOOK_PRIVATE_TARGETS: 'allow',
})
const front = createServer((socket) => {
  const inner = connect(rig().tollgate.apiPort, '127.0.0.1')
  for (const each of [socket, inner]) each.on('error', () => inner.destroy())
  socket.pipe(inner).pipe(socket)
})
beforeAll(() => new Promise<void>((done) => front.listen(publicPort, '127.0.0.1', done)))
afterAll(() => void front.close())

test('an administrator sets up a provider, by which people sign in; who has no role is told so', async () => {
  const provider = await openProvider(`${publicUrl}/api/v1/auth/callback/1`)
  provider.people.set('sub-1', { groups: ['voice'], preferred_username: 'grace' })
  const { page, inaccessible } = await signedIn()
  await page.getByRole('link', { name: 'Identity providers' }).click()
  await page.getByRole('button', { name: 'New identity provider' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Name', { exact: true }).fill('Company')
  await dialog.getByLabel(/^Issuer/).fill(provider.issuer)
  await dialog.getByLabel(/^Client ID/).fill(clientId)
  await dialog.getByLabel(/^Client secret/).fill(clientSecret)
  await dialog.getByLabel(/^Value/).fill('voice')
  await dialog.getByLabel(/^Role/).selectOption('operator')
  await dialog.getByRole('button', { name: 'Create' }).click()
  await row(page, 'Company').getByText(`${publicUrl}/api/v1/auth/callback/1`).waitFor()
  expect(await inaccessible()).toEqual([])

  const context = page.context().browser()
  if (context === null) throw new Error('there is no browser')
  const visitor = await openConsole(context, { apiPort: publicPort })
  const signInThere = async (subject: string): Promise<void> => {
    await visitor.page.getByRole('link', { name: 'Sign in with Company' }).click()
    await visitor.page.waitForURL(`${provider.issuer}/**`)
    await visitor.page.locator('input[name=login]').fill(subject)
    await visitor.page.locator('input[name=password]').fill('any')
    await visitor.page.locator('button[type=submit]').click()
    await visitor.page.waitForURL(`${publicUrl}/**`)
  }
  await visitor.page.getByRole('link', { name: 'Sign in with Company' }).waitFor()
  expect(await visitor.inaccessible()).toEqual([])
  await signInThere('sub-1')
  await visitor.page.getByRole('button', { name: 'Account grace' }).waitFor()
  await visitor.page.context().clearCookies()
  await visitor.page.goto(publicUrl)
  await signInThere('sub-2')
  await visitor.page.getByText('You have no role here').waitFor()
  // A password opens a session as ever.
  await visitor.signIn(admin.username, admin.password)
  await provider.stop()
  await visitor.page.context().close()
})
