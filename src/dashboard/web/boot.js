// Runs before the first paint: a page that was chosen dark must not flash white.
try {
  const { theme, compact } = JSON.parse(localStorage.getItem('millrace.dashboard') ?? '{}')
  if (theme === 'light' || theme === 'dark') document.documentElement.classList.add(theme)
  if (compact === true) document.documentElement.classList.add('compact')
} catch {
  // Without storage the page follows the system.
}
