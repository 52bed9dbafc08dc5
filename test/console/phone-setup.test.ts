/**
 * A stranger at a console with a trunk: a tenant, its user and key, and a softphone that calls out.
 */
import { expect, onTestFinished, test } from 'vitest'
import { Baresip } from '../support/baresip.ts'
import { formsOf, openBrowser, openConsole, row } from '../support/console-browser.ts'
import { admin } from '../support/console-rig.ts'
import { startWithNode } from '../support/scripted-node.ts'
import { sdp } from '../support/sip-peer.ts'

test(
  'a tenant, a softphone that calls out by what the console says, a user and a key are made in the console',
  { timeout: 180_000 },
  async () => {
    const { node: telco, tollgate } = await startWithNode(
      ([port]) => ({
        rate_plans: [{ name: 'retail', currency: 'USD' }],
        rates: [{ rate_plan: 'retail', prefix: '1', rate_per_minute: '0.60' }],
        customers: [{ name: 'Acme', rate_plan: 'retail', balance: '10.00' }],
        carriers: [{ name: 'telco', direction: 'out', gateways: [{ host: '127.0.0.1', port }] }],
        outbound_routes: [{ name: 'all', carrier: 'telco' }],
      }),
      { ADMIN_PASSWORD: admin.password },
    )
    const browser = await openBrowser()
    onTestFinished(() => browser.close())
    const { page, complaints, signIn, inaccessible } = await openConsole(browser, tollgate)
    onTestFinished(() => page.context().close())
    await signIn(admin.username, admin.password)
    const { dialog, field, choice, confirm, open } = formsOf(page)

    await open('Tenants', 'New tenant')
    await field('Short name').fill('acme')
    await field('SIP domains').fill('acme.example')
    await confirm('Create')
    await row(page, 'acme.example').waitFor()

    await open('Phones', 'New extension')
    await field('Extension').fill('101')
    await field('Name').fill('Desk')
    await choice('Tenant').selectOption('acme')
    await choice('Pays for its calls').selectOption('Acme')
    await confirm('Create')
    const password = (await page.locator('.token').textContent()) ?? ''
    const entered = page.getByRole('status').filter({ hasText: 'Enter this in the phone' })
    await entered.getByText('acme.example', { exact: true }).waitFor()
    await entered.getByText(`127.0.0.1:${tollgate.sipPort} (UDP)`).waitFor()

    const phone = await Baresip.start({
      user: '101',
      password,
      domain: 'acme.example',
      sipPort: tollgate.sipPort,
    })
    onTestFinished(() => phone.stop())
    await phone.registered()
    await row(page, 'Desk').getByText('registered', { exact: true }).waitFor()
    await phone.command('dial', 'sip:18005551212@acme.example')
    telco.reply(await telco.next('INVITE'), 200, { tag: 'telco', body: sdp('telco', 40_000) })
    await telco.next('ACK')
    await phone.next('CALL_ESTABLISHED')
    await phone.command('hangup')
    telco.reply(await telco.next('BYE'), 200)
    const [record] = await tollgate.waitForCalls(1)
    expect(record).toMatchObject({ disposition: 'ANSWERED', carrier: 'telco', denial_code: null })
    expect(record?.cost_micros).toBeGreaterThan(0)

    await open('Users', 'New user')
    await field('User name').fill('tessa')
    await choice('Role').selectOption('administrator: everything')
    await choice('Tenant').selectOption('acme')
    await confirm('Create')
    await page.getByText('The password, shown only now').waitFor()
    const secret = (await page.locator('.token').textContent()) ?? ''
    const tessa = await openConsole(browser, tollgate)
    onTestFinished(() => tessa.page.context().close())
    await tessa.signIn('tessa', secret)
    await tessa.page.getByRole('link', { name: 'Phones', exact: true }).click()
    await row(tessa.page, 'Desk').waitFor()
    expect(await tessa.page.getByRole('link', { name: 'Tenants', exact: true }).count()).toBe(0)
    await row(page, 'tessa')
      .getByRole('button', { name: /^Change/ })
      .click()
    await dialog.getByRole('checkbox', { name: 'May sign in' }).uncheck()
    await confirm('Save')
    await row(page, 'tessa').getByText('may not sign in').waitFor()
    await row(page, 'tessa')
      .getByRole('button', { name: /^Delete/ })
      .click()
    await confirm('Delete')
    await row(page, 'tessa').waitFor({ state: 'detached' })
    await row(page, 'admin')
      .getByRole('button', { name: /^Delete/ })
      .click()
    await confirm('Delete')
    await dialog.getByText('At least one active global admin must remain').waitFor()
    await confirm('Cancel')

    await open('Keys', 'New key')
    await field('Name').fill('crm')
    await dialog.getByRole('checkbox', { name: 'see everything' }).uncheck()
    await dialog.getByText('Single rights').click()
    await dialog.getByRole('group', { name: 'customers', exact: true }).getByLabel('see').check()
    await dialog.getByText('More settings').click()
    await choice('Tenant').selectOption('acme')
    await field('Allowed addresses').fill('nowhere')
    expect(await inaccessible()).toEqual([])
    await confirm('Create')
    await dialog.getByText('must be a CIDR').waitFor()
    await field('Allowed addresses').fill('127.0.0.0/8')
    await confirm('Create')
    await page.getByText('The new token, shown only now').waitFor()
    const token = await page.locator('.token').textContent()
    const answered = async (path: string): Promise<number> => {
      const url = `http://127.0.0.1:${tollgate.apiPort}/api/v1${path}`
      return (await fetch(url, { headers: { Authorization: `Bearer ${token}` } })).status
    }
    expect(await answered('/customers')).toBe(200)
    expect(await answered('/routing/carriers')).toBe(403)
    await row(page, 'crm')
      .getByRole('button', { name: /^Change/ })
      .click()
    await dialog.getByRole('group', { name: 'carriers' }).getByLabel('see').check()
    await confirm('Save')
    await dialog.waitFor({ state: 'detached' })
    expect(await answered('/routing/carriers')).toBe(200)

    await page.getByRole('link', { name: 'Tenants', exact: true }).click()
    await row(page, 'acme')
      .getByRole('button', { name: /^Delete/ })
      .click()
    await dialog.getByText('1 extension uses it: 101').waitFor()
    await confirm('Cancel')
    // The browser's own lines about what was refused.
    expect(complaints.filter((line) => !/ 40[09] /.test(line))).toEqual([])
  },
)
